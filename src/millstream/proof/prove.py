"""Prove a pipeline: move it, kill it, run it to its end, compare every sink with the batch answer."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.proof.aims import aims
from millstream.proof.answer import answers
from millstream.proof.drivers import Drivers
from millstream.proof.feed import Feed
from millstream.proof.killing import PORTIONS, Killing
from millstream.proof.report import Report
from millstream.proof.scene import Scene
from millstream.runtime.batch.judge import judge
from millstream.runtime.session import end, open_session

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from millstream.pipeline.model import Pipeline
    from millstream.proof.faults import Fault
    from millstream.proof.feed import Recorded
    from millstream.proof.moved import Moved
    from millstream.runtime.batch.judge import Verdict


@dataclass(frozen=True)
class Wish:
    """What is to be proven, and how hard. `command` starts a driver, which waits for its `Order`."""

    kills: int
    seed: int
    rows: int
    command: Sequence[str]
    env: Mapping[str, str]
    folder: Path
    point: str | None = None
    faults: Sequence[Fault] = ()

    @property
    def portions(self) -> int:
        """In so many portions the input is fed: one and more a kill. Faults get theirs on top."""
        return self.kills * (PORTIONS + 1) + 1


def prove(
    original: Pipeline,
    copy: Moved,
    wish: Wish,
    say: Callable[[str], None],
    recorded: Recorded | None = None,
) -> Report:
    """Kill the copy as often as wished and judge its sinks. Raises `MillstreamError` when it cannot end."""
    began = time.monotonic()
    pipeline = copy.pipeline
    feed = Feed(
        pipeline,
        original,
        copy.fed,
        portions=wish.portions,
        rows=wish.rows,
        seed=wish.seed,
        recorded=recorded,
    )
    with closing(Drivers(wish.command, wish.env, wish.folder)) as drivers:
        scene = Scene(pipeline, feed, drivers)
        killing = Killing(scene, say)
        killing.disturb(wish.faults)
        killing.kill(aims(pipeline, wish.kills, wish.seed, wish.point), wish.kills)
        killing.finish()
        scene.tally.starts = drivers.started
    say("computing the batch answer")
    report = Report(original.name, wish.seed, scene.tally, notes=copy.notes, rows=feed.rows)
    report.verdicts = judged(copy, wish.folder / "answer.log")
    report.seconds = time.monotonic() - began
    return report


def judged(copy: Moved, log: Path) -> list[Verdict]:
    """Each sink of the copy against a batch run over all that was fed."""
    pipeline = copy.pipeline
    spark = open_session(f"{pipeline.name}-answer", dict(pipeline.spark), log)
    try:
        before = answers(spark, pipeline, closed=False)
        after = answers(spark, pipeline, closed=True)
        return [
            judge(name, key, entry, query.output_mode, before[name], after[name])
            for name, query in pipeline.queries.items()
            for key, entry in zip(copy.names[name], query.to, strict=True)
        ]
    finally:
        spark.stop()
        # Its log lies in the folder of the proof, which may be a disk that is to be taken away.
        end()


def discard(pipeline: Pipeline) -> None:
    """Remove what a copy left outside of its folder."""
    for entry in pipeline.sources.values():
        if not entry.static:
            entry.source.discard()
    for query in pipeline.queries.values():
        for sink in query.to:
            sink.sink.discard()
