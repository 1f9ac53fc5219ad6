"""Prove a pipeline: copy it, kill it, run it to the end, and compare every sink with the batch result."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.engine.batch.dead_letter_comparison import compare_dead_letters
from millstream.engine.batch.sink_comparison import compare_sink
from millstream.engine.sink_keys import sink_keys
from millstream.proof.batch_result import compute_batch_results
from millstream.proof.driver_pool import Drivers
from millstream.proof.environment import ProofRun
from millstream.proof.input_feed import InputFeed
from millstream.proof.kill_loop import PORTIONS, KillLoop
from millstream.proof.kill_plan import plan_kills
from millstream.proof.report import ProofReport
from millstream.spark.session import open_session, shut_down_jvm

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from millstream.engine.batch.sink_comparison import Verdict
    from millstream.pipeline.model import Pipeline
    from millstream.proof.faults import Fault
    from millstream.proof.input_feed import DeclaredInput
    from millstream.proof.sandbox import SandboxCopy


@dataclass(frozen=True)
class ProofOptions:
    """Options of a proof. `command` starts a driver, which waits for its `Order`."""

    kills: int
    seed: int
    rows: int
    command: Sequence[str]
    env: Mapping[str, str]
    folder: Path
    point: str | None = None
    faults: Sequence[Fault] = ()
    backfill: bool = False
    """Whether backfills of past ranges run during the kills."""

    @property
    def portions(self) -> int:
        """The number of input portions: several per kill and one more. Faults get additional portions."""
        return self.kills * (PORTIONS + 1) + 1


def prove(
    original: Pipeline,
    copy: SandboxCopy,
    options: ProofOptions,
    say: Callable[[str], None],
    recorded: DeclaredInput | None = None,
) -> ProofReport:
    """Kill the copy the requested number of times and judge its sinks. Raises `MillstreamError` if it cannot end."""
    started = time.monotonic()
    pipeline = copy.pipeline
    feed = InputFeed(
        pipeline,
        original,
        copy.fed_sources,
        portions=options.portions,
        rows=options.rows,
        seed=options.seed,
        recorded=recorded,
    )
    with closing(Drivers(options.command, options.env, options.folder)) as drivers:
        scene = ProofRun(pipeline, feed, drivers)
        kill_loop = KillLoop(scene, say)
        kill_loop.run_faults(options.faults)
        backfills = drivers.backfill() if options.backfill else None
        kill_loop.kill(plan_kills(pipeline, options.kills, options.seed, options.point), options.kills)
        if backfills is not None:
            kill_loop.beside(backfills)
            scene.tally.backfilled = _with_original_names(scene.tally.backfilled, copy)
        kill_loop.finish()
        scene.tally.starts = drivers.started
    say("computing the batch result")
    report = ProofReport(original.name, options.seed, scene.tally, notes=copy.notes, rows=feed.rows)
    report.verdicts = judge_sinks(copy, options.folder / "answer.log")
    report.seconds = time.monotonic() - started
    return report


def _with_original_names(counts: Counter[str], copy: SandboxCopy) -> Counter[str]:
    """Return the counts by query and sink, with the sinks' names in the copy replaced by the original ones."""
    names = {
        f"{query} {copied}": f"{query} {original}"
        for query, originals in copy.names.items()
        for copied, original in zip(sink_keys(copy.pipeline, query), originals, strict=True)
    }
    return Counter({names.get(name, name): count for name, count in counts.items()})


def judge_sinks(copy: SandboxCopy, log: Path) -> list[Verdict]:
    """Compare each sink of the copy, and its dead letters, with a batch run over the entire input."""
    pipeline = copy.pipeline
    spark = open_session(f"{pipeline.name}-answer", dict(pipeline.spark), log)
    try:
        before = compute_batch_results(spark, pipeline, closed=False)
        after = compute_batch_results(spark, pipeline, closed=True)
        sinks = [
            compare_sink(name, key, entry, query.output_mode, before[name], after[name])
            for name, query in pipeline.queries.items()
            for key, entry in zip(copy.names[name], query.to, strict=True)
        ]
        return [*sinks, *compare_dead_letters(spark, pipeline)]
    finally:
        spark.stop()
        # Its log is in the proof's folder, which may be on a disk that will be unmounted.
        shut_down_jvm()


def discard_sandbox(pipeline: Pipeline) -> None:
    """Delete everything that a copy created outside of its folder."""
    for entry in pipeline.sources.values():
        if not entry.static:
            entry.source.discard()
    for query in pipeline.queries.values():
        for sink in query.to:
            sink.sink.discard()
