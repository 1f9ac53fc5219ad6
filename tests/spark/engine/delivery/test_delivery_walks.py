"""What waits for its sinks, backfills and restarts in any order: each row comes once, and a refusal changes nothing.

A walk is a sequence of words, one a step. Spark's streaming engine is left out: a batch is planned, delivered and
committed by `Query`, which writes the checkpoint as Spark does. All else is what a run, a replay and a backfill do.
`MILLSTREAM_SWEEP=all` walks more, twenty of them drawn at random; `MILLSTREAM_SEED=7` others.
"""

from __future__ import annotations

import json
import os
import random
import signal
import time
from contextlib import contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable

from millstream.backfill.execute import backfill
from millstream.backfill.options import BackfillOptions, parse_time
from millstream.checking.spark_analysis import analyse_pipeline
from millstream.checkpoint.folder import Checkpoint
from millstream.connectors import failpoints
from millstream.connectors.delta.writer import DeltaWriter
from millstream.connectors.files.writer import FilesWriter
from millstream.diagnostics.failure import CheckpointError, Outage
from millstream.engine.delivery import spool_retry, spooling_writer
from millstream.engine.delivery.batch_spool import list_spooled_batches
from millstream.engine.delivery.spool_replay import replay
from millstream.engine.delivery.undelivered import check_start
from millstream.engine.events.event_bus import EventBus
from millstream.engine.streaming_query import RunningQuery
from millstream.frames.build_views import build_frames
from spark.backfill.conftest import Shop, order
from sweep import WHOLE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from millstream.pipeline.model import Pipeline

pytestmark = [pytest.mark.usefixtures("interpreted", "small_batches"), pytest.mark.timeout(300)]

SPEC = """
name: shop
defaults: {{checkpoints: checkpoints}}
sources:
  orders:
    json: {{path: in, max_files_per_trigger: 1}}
    schema: {{id: string, amount: int, at: timestamp}}
    watermark: {{event_time: at, delay_threshold: 10 minutes}}
queries:
  copy: {{from: orders, to: [{{delta: table{0}}}, {{parquet: files{0}}}]}}
"""
ON = ", on_error: dead_letter"

# `word!point` kills the step at that failpoint. A word in capitals must be refused.
WALKS = {
    "a backfill before the first batch": "arrive BACKFILL run!delta.before BACKFILL run lose backfill",
    "the first batch waits": "down arrive run up BACKFILL off RUN on arrive run!aside.delivered run lose backfill",
    "deaths while batches are delivered": (
        "arrive run down arrive run!aside.kept run arrive run up replay!delta.committed BACKFILL "
        "replay!files.published off RUN replay arrive run"
    ),
    "deaths in a backfill": (
        "arrive arrive run lose backfill!delta.committed backfill down arrive run up off "
        "BACKFILL REPLACE replay!aside.delivered RUN replay lose backfill!delta.before replace"
    ),
    "a batch is cut off and a backfill comes before it is repeated": (
        "arrive run arrive run!batch.delivered lose REPLACE backfill arrive run"
    ),
}
# Their steps are parts of those above; without the deaths it is plainer what went wrong.
SHORT_WALKS = {
    "the setting is taken off while a batch waits": (
        "arrive run down arrive run off up arrive RUN replay run"
    ),
    "a backfill while a batch waits": "arrive run down arrive run up BACKFILL REPLACE replay backfill",
}
STEPS = ("arrive", "run", "down", "up", "replay", "backfill", "replace", "off", "on", "lose")
DEATHS = {
    "run": (
        "batch.begun",
        "batch.delivered",
        "aside.kept",
        "aside.delivered",
        "delta.committed",
        "files.staged",
    ),
    "replay": ("aside.delivered", "delta.before", "delta.committed", "files.committed"),
    "backfill": ("delta.before", "delta.committed", "files.published"),
    "replace": ("delta.before", "delta.committed"),
}


class Killed(BaseException):
    """The process is dead; only the test goes on."""


class Handle:
    """Spark's handle of a query without figures."""

    id = runId = "none"  # noqa: N815 - Spark's name

    def __init__(self) -> None:
        figures = SimpleNamespace(get=lambda _: SimpleNamespace(isEmpty=lambda: True))
        execution = SimpleNamespace(observedMetrics=lambda: figures)
        self._jsq = SimpleNamespace(streamingQuery=lambda: SimpleNamespace(lastExecution=lambda: execution))


class Query(RunningQuery):
    """A query whose batches are planned and committed here: one file each."""

    def _start(self, checkpoint: Checkpoint) -> Any:  # noqa: ARG002 - the signature of the real one
        return Handle()

    def catch_up(self, files: list[Path]) -> None:
        """Deliver and commit a batch for every file; one that was planned and not committed comes first."""
        checkpoint = Checkpoint(self._folder())
        assert self.delivery is not None
        while True:
            planned, committed = checkpoint.planned(), checkpoint.committed()
            batch = 0 if committed is None else committed + 1
            if batch >= len(files):
                return
            if planned != batch:
                log = {"path": files[batch].as_uri(), "timestamp": 0, "batchId": batch}
                self._write(f"sources/0/{batch}", json.dumps(log))
                about = {"batchWatermarkMs": 0, "batchTimestampMs": time.time_ns() // 1_000_000, "conf": {}}
                self._write(f"offsets/{batch}", json.dumps(about), json.dumps({"logOffset": batch}))
            schema = self.pipeline.sources["orders"].ddl
            assert schema is not None
            self.delivery(self.spark.read.schema(schema).json(str(files[batch])), batch)
            self._write(f"commits/{batch}", "{}")

    def _write(self, name: str, *lines: str) -> None:
        file = self._folder() / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("\n".join(["v1", *lines]))


class Walk(Shop):
    """A project that is walked through, and what the next step must meet."""

    is_on = True
    is_down = False
    _plans: Any = None

    @property
    def pipeline_now(self) -> Pipeline:
        self.spec = SPEC.format(ON if self.is_on else "")
        pipeline = self.loaded().pipeline
        assert pipeline is not None
        return pipeline

    @property
    def checkpoint(self) -> Checkpoint:
        return Checkpoint(self.folder / "checkpoints" / "copy")

    @property
    def waits(self) -> bool:
        return bool(list_spooled_batches(self.pipeline_now, ["copy"]))

    def step(self, word: str) -> bool:
        """Take one step; False when it was refused."""
        name, _, point = word.partition("!")
        try:
            with armed(point):
                getattr(self, f"_{name}")()
        except Killed:
            return True
        except CheckpointError:
            return False
        return True

    def is_refused(self, word: str) -> bool:
        """Must the step be refused?"""
        committed, planned = self.checkpoint.committed(), self.checkpoint.planned()
        match word.partition("!")[0]:
            case "run":
                return self.waits and not self.is_on
            case "backfill":
                return self.waits or committed is None
            case "replace":
                return self.waits or committed is None or planned != committed
        return False

    def state(self) -> Any:
        """All that a refused command must leave as it is."""
        logs = [
            sorted(file.name for file in (self.checkpoint.folder / log).glob("[0-9]*"))
            for log in ("offsets", "commits")
        ]
        batches = [(batch.sink, batch.batch) for batch in list_spooled_batches(self.pipeline_now, ["copy"])]
        return self.ids("table"), self.ids("files"), batches, logs

    def ids(self, name: str) -> list[str]:
        """The ids that a sink holds."""
        entry = next(
            sink_entry.sink
            for sink_entry in self.pipeline_now.queries["copy"].to
            if sink_entry.sink.target().endswith(name)
        )
        if not (self.folder / name).is_dir():
            return []
        rows = entry.rows(1000)
        assert rows is not None
        return sorted(str(row[rows[0].index("id")]) for row in rows[1])

    def _arrive(self) -> None:
        self.add_lines(order(f"o{self._files:02}", f"12:{self._files:02}:00"))

    def _run(self) -> None:
        pipeline, events = self.pipeline_now, EventBus()
        check_start(pipeline, ["copy"])
        frame = build_frames(self.spark, pipeline)[pipeline.reads("copy")]
        query = Query(self.spark, pipeline, "copy", frame, pipeline.trigger("copy"), events)
        try:
            query.start()
            query.catch_up(sorted((self.folder / "in").iterdir()))
        finally:
            query.close()
            events.close()

    def _replay(self) -> None:
        replay(self.spark, self.pipeline_now, ["copy"], None, lambda *_: None)

    def _backfill(self) -> None:
        self._fill(BackfillOptions())

    def _replace(self) -> None:
        self._fill(BackfillOptions(parse_time("2026-01-01"), None, sink="delta", replace=True))

    def _fill(self, options: BackfillOptions) -> None:
        pipeline = self.pipeline_now
        self._plans = self._plans or analyse_pipeline(self.spark, self.loaded()).queries
        backfill(self.spark, pipeline, self._plans, ["copy"], options, lambda _: None)

    def _lose(self) -> None:
        """Somebody deletes a row of the table, which a backfill brings back."""
        if there := self.ids("table"):
            DeltaTable(str(self.folder / "table")).delete(f"id = '{there[0]}'")

    def _down(self) -> None:
        self.is_down = True

    def _up(self) -> None:
        self.is_down = False

    def _off(self) -> None:
        self.is_on = False

    def _on(self) -> None:
        self.is_on = True


@contextmanager
def armed(point: str) -> Iterator[None]:
    """Kill at a failpoint, the first time that it is reached."""
    failpoints._counts.clear()
    os.environ[failpoints.VARIABLE] = f"{point}=kill@1" if point else ""
    try:
        yield
    finally:
        del os.environ[failpoints.VARIABLE]


@pytest.fixture
def walk(tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Walk:
    """A project without rows; its two sinks can be down."""
    result = Walk(tmp_path, spark)
    for name in ("PATIENCE", "FIRST_PROBE", "LAST_PROBE"):
        monkeypatch.setattr(spooling_writer, name, 0.0)
    # However slow the machine is, a run delivers all that waits.
    monkeypatch.setattr(spooling_writer, "DRAIN", 300.0)
    # What waits comes with a batch or a replay, and not at a moment of its own.
    monkeypatch.setattr(spool_retry, "EVERY", 3600.0)

    def die(process: int, number: int) -> None:
        assert (process, number) == (os.getpid(), signal.SIGKILL)
        raise Killed

    monkeypatch.setattr(
        failpoints, "os", SimpleNamespace(environ=os.environ, getpid=os.getpid, kill=die), raising=True
    )

    def failing(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any) -> Any:
            if result.is_down:
                raise Outage("the sinks are away", "wait")
            return real(*given)

        return call

    for kind in (DeltaWriter, FilesWriter):
        for method in ("open", "write", "last_committed_batches"):
            monkeypatch.setattr(kind, method, failing(getattr(kind, method)))
    return result


def take(walk: Walk, words: list[str]) -> None:
    """Walk, then deliver all: each row is in each sink once. A refused step changes nothing."""
    missing = False
    for at, word in enumerate(words):
        text = " ".join(words[: at + 1])
        name = word.lower()
        refusal = walk.is_refused(name)
        before = walk.state() if refusal else None
        assert word != word.upper() or refusal, f"{text}: the model takes it"
        step = walk.step(name)
        assert step is not refusal, f"{text}: taken is {step}"
        if not step:
            assert walk.state() == before, f"{text}: was refused and changed something"
        if name == "lose" or (step and name in ("backfill", "replace")):
            missing = name == "lose"
    for word in ("on", "up", "replay", "arrive", "run", *(("backfill",) if missing else ())):
        assert walk.step(word), f"{' '.join(words)} and then {word}"
    texts = sorted(f"o{number:02}" for number in range(walk._files))
    assert (walk.ids("table"), walk.ids("files")) == (texts, texts), " ".join(words)
    assert not walk.waits


def drawn(number: int) -> str:
    """A walk of twelve steps at random."""
    draw = random.Random(f"{os.environ.get('MILLSTREAM_SEED', '1')}/{number}")
    words: list[str] = []
    is_down, is_on = False, True
    for _ in range(12):
        name = draw.choice((*STEPS, "arrive", "run"))
        point = draw.choice(DEATHS[name]) if name in DEATHS and draw.random() < 0.3 else ""
        # A sink that is away ends what needs it; that is not what is walked here.
        if is_down and (name in ("replay", "backfill", "replace") or (name == "run" and not is_on)):
            name, point = "up", ""
        is_down = name == "down" or (is_down and name != "up")
        is_on = name == "on" or (is_on and name != "off")
        words.append(f"{name}!{point}" if point else name)
    return " ".join(words)


MORE = SHORT_WALKS | {f"walk {number}": drawn(number) for number in range(20)} if WHOLE else {}


@pytest.mark.parametrize("story", [*WALKS, *MORE])
def test_each_row_is_in_each_sink_once(walk: Walk, story: str) -> None:
    take(walk, (WALKS | MORE)[story].split())
