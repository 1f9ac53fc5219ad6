"""What happens to a query that fails, and of one that is asked to end."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, ClassVar

import duckdb
import pytest

from millstream.connectors.api.sink import Sink
from millstream.connectors.api.writer import Writer, WriteResult
from millstream.diagnostics.failure import MillstreamError, Outage
from millstream.engine.events.event_bus import Event, EventBus
from millstream.engine.run import RunOptions
from millstream.engine.streaming_query import RunningQuery
from millstream.engine.supervisor import Supervisor
from millstream.frames.build_views import build_frames
from millstream.pipeline.model import SinkEntry
from millstream.spark.internals import stream_execution
from millstream.spec.backoff import Backoff
from millstream.spec.duration import Duration
from millstream.spec.guarantee import Guarantee
from millstream.spec.output_mode import OutputMode
from millstream.spec.trigger import Trigger

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from millstream.connectors.api.writer import SinkIdentity
    from millstream.pipeline.model import Pipeline
    from spark.conftest import Project

pytestmark = pytest.mark.usefixtures("small_batches")

A = {"id": "a", "amount": 3, "at": "2026-01-01T12:01:00Z"}
B = {"id": "b", "amount": 4, "at": "2026-01-01T12:02:00Z"}


class Troubled(Sink):
    """A sink that meets what the test says, then takes rows."""

    kind: ClassVar[str] = "troubled"
    main: ClassVar[str] = "name"
    modes = frozenset(OutputMode)
    troubles: ClassVar[list[Exception]] = []
    taken: ClassVar[list[tuple[int, int]]] = []
    writing: ClassVar[threading.Event] = threading.Event()
    go_on: ClassVar[threading.Event] = threading.Event()

    def writer(self, identity: SinkIdentity) -> Writer:
        return _Writer(identity)

    def guarantee(self, mode: OutputMode) -> tuple[Guarantee, str]:
        return Guarantee.AT_LEAST_ONCE, f"it is a test's, in {mode}"

    def target(self) -> str:
        return "nowhere"


class _Writer(Writer):
    def write(self, frame: DataFrame, batch_id: int) -> WriteResult:
        rows = frame.count()
        Troubled.writing.set()
        assert Troubled.go_on.wait(60)
        if Troubled.troubles:
            raise Troubled.troubles.pop(0)
        Troubled.taken.append((batch_id, rows))
        return WriteResult(rows=rows)


def troubled(project: Project, *troubles: Exception) -> Pipeline:
    """The project's `copy` query, into a sink that meets those troubles first."""
    Troubled.troubles[:], Troubled.taken[:] = list(troubles), []
    Troubled.writing.clear()
    Troubled.go_on.set()
    pipeline = project.pipeline()
    query = pipeline.queries["copy"].model_copy(update={"to": (SinkEntry(sink=Troubled()),)})
    return pipeline.model_copy(update={"queries": {"copy": query}})


def test_an_outage_is_waited_out_and_no_row_is_lost(project: Project) -> None:
    project.add_lines(A)
    project.add_lines(B)

    fine = project.run(troubled(project, Outage("the sink is away"), Outage("still away")))

    assert fine
    assert [event.data["reason"] for event in project.list_events("retry")] == [
        "the sink is away",
        "still away",
    ]
    assert [rows for _, rows in Troubled.taken if rows] == [1, 1]


def test_a_defect_is_not_tried_again(project: Project) -> None:
    project.add_lines(A)

    fine = project.run(troubled(project, MillstreamError("a row has no key", "leave it out")))

    assert not fine
    assert project.list_events("retry") == []
    (failed,) = project.list_events("query_failed")
    assert (failed.data["reason"], failed.data["fix"]) == ("a row has no key", "leave it out")


def test_patience_ends(project: Project) -> None:
    project.add_lines(A)
    pipeline = troubled(project, *[Outage("away")] * 100)
    defaults = pipeline.defaults.model_copy(
        update={"retry": Backoff(first=Duration("10 ms"), give_up_after=Duration("300 ms"))}
    )

    fine = project.run(pipeline.model_copy(update={"defaults": defaults}))

    assert not fine
    assert project.list_events("query_failed")[0].data["cause"] == "outage"


def test_a_query_that_gave_up_ends_the_others_too(project: Project) -> None:
    project.add_lines(A)
    pipeline = troubled(project, MillstreamError("broken"))
    other = project.pipeline().queries["sums"].model_copy(update={"trigger": Trigger()})
    both = pipeline.model_copy(update={"queries": {**pipeline.queries, "sums": other}})

    fine = project.run(both, None)

    assert not fine
    assert project.spark.streams.active == []


def test_asked_to_end_a_query_finishes_and_commits_its_batch(project: Project) -> None:
    project.add_lines(A)
    pipeline = troubled(project)
    Troubled.go_on.clear()
    events = EventBus()
    messages: list[Event] = []
    events.listen(messages.append)
    frames = build_frames(project.spark, pipeline)
    query = RunningQuery(project.spark, pipeline, "copy", frames["orders"], Trigger(), events)
    supervisor = Supervisor([query], Backoff(), events)
    result: list[bool] = []
    thread = threading.Thread(target=lambda: result.append(supervisor.run()))
    thread.start()

    assert Troubled.writing.wait(60)
    supervisor.end()
    Troubled.go_on.set()
    thread.join(60)
    events.close()

    assert result == [True]
    assert Troubled.taken[0] == (0, 1)
    assert project.numbers("copy", "offsets") == project.numbers("copy", "commits")
    assert messages[-1].event == "query_stopped"


def test_a_failure_right_before_the_run_is_asked_to_end_is_reported(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("millstream.engine.supervisor.LOOK", 60.0)
    project.add_lines(A)
    pipeline = troubled(project, MillstreamError("a row has no key"))
    events = EventBus()
    messages: list[Event] = []
    events.listen(messages.append)
    frames = build_frames(project.spark, pipeline)
    query = RunningQuery(project.spark, pipeline, "copy", frames["orders"], Trigger(), events)
    supervisor = Supervisor([query], Backoff(), events)
    result: list[bool] = []
    thread = threading.Thread(target=lambda: result.append(supervisor.run()))
    thread.start()
    assert Troubled.writing.wait(60)
    assert query.handle is not None
    stream_execution(query.handle).queryExecutionThread().join(60_000)

    supervisor.end()
    thread.join(60)
    events.close()

    assert result == [False]
    assert [message.data["reason"] for message in messages if message.event == "query_failed"] == [
        "a row has no key"
    ]


def test_asked_to_end_while_spark_plans_a_batch_the_batch_is_delivered_and_committed(
    project: Project,
) -> None:
    project.add_lines(A)
    pipeline = troubled(project)
    events = EventBus()
    frames = build_frames(project.spark, pipeline)
    query = RunningQuery(project.spark, pipeline, "copy", frames["orders"], Trigger(), events)
    supervisor = Supervisor([query], Backoff(), events)
    result: list[bool] = []
    thread = threading.Thread(target=lambda: result.append(supervisor.run()))
    thread.start()

    # Spark writes the offsets before it plans the batch.
    checkpoint, until = project.folder / ".millstream" / "checkpoints" / "copy", time.monotonic() + 60
    while not (checkpoint / "offsets" / "0").exists() and time.monotonic() < until:
        threading.Event().wait(0.002)
    # If this thread stands still here for the time of a batch, the batch is delivered before anybody asks.
    query.ask_to_end()
    supervisor.end()
    thread.join(60)
    events.close()

    assert result == [True]
    assert Troubled.taken == [(0, 1)]
    assert project.numbers("copy", "offsets") == project.numbers("copy", "commits") == [0]


def test_asked_twice_a_query_ends_at_once_and_the_batch_comes_again(project: Project) -> None:
    project.add_lines(A)
    pipeline = troubled(project)
    Troubled.go_on.clear()
    frames = build_frames(project.spark, pipeline)
    query = RunningQuery(project.spark, pipeline, "copy", frames["orders"], Trigger(), EventBus())
    supervisor = Supervisor([query], Backoff(), EventBus())
    thread = threading.Thread(target=supervisor.run)
    thread.start()

    assert Troubled.writing.wait(60)
    supervisor.end()
    supervisor.end()
    Troubled.go_on.set()
    thread.join(60)

    assert not thread.is_alive()
    project.run(troubled(project))
    assert (0, 1) in Troubled.taken or project.numbers("copy", "commits")[0] == 0


def test_a_batch_that_does_not_reach_its_sink_when_the_time_of_a_run_is_over_fails_the_run(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.add_lines(A)
    pipeline = troubled(project, Outage("the sink is away"))
    Troubled.go_on.clear()
    events = EventBus()
    messages: list[Event] = []
    events.listen(messages.append)
    events.listen(lambda event: Troubled.go_on.set() if event.event == "stopping" else None)
    frames = build_frames(project.spark, pipeline)
    query = RunningQuery(project.spark, pipeline, "copy", frames["orders"], Trigger(), events)
    supervisor = Supervisor([query], Backoff(), events)
    # The time is over while the batch is being written.
    monkeypatch.setattr(supervisor, "_has_begun", Troubled.writing.is_set)

    succeeded = supervisor.run(0.0)
    events.close()

    assert not succeeded
    assert supervisor.exit_code == 1
    assert not [event for event in messages if event.event in ("retry", "query_stopped")]
    (failed,) = [event for event in messages if event.event == "query_failed"]
    assert failed.data["batch"] == 0
    assert failed.data["reason"] == (
        "the sink is away (the time of the run is over; the next run continues here)"
    )
    assert project.run(troubled(project))
    assert [rows for _, rows in Troubled.taken if rows] == [1]


OPEN_DATABASE = (
    "import duckdb, sys; database = duckdb.connect(sys.argv[1]); print('open', flush=True); sys.stdin.read()"
)


def test_a_run_whose_sink_is_away_until_its_time_is_over_has_failed_and_the_next_delivers(
    project: Project,
) -> None:
    file = project.folder / "shop.duckdb"
    sink = {"duckdb": {"path": str(file), "table": "orders"}}
    pipeline = project.pipeline(queries={"copy": {"from": "orders", "to": [sink]}})
    project.add_lines(A)
    assert project.run(pipeline)
    project.add_lines(B)
    # A program that has the file open, as a notebook may.
    with subprocess.Popen(
        [sys.executable, "-c", OPEN_DATABASE, str(file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        assert other.stdout.readline() == b"open\n"
        succeeded = project.run(pipeline, RunOptions(seconds=0.5))
        other.stdin.close()

    assert not succeeded
    (failed,) = project.list_events("query_failed")
    assert failed.data["reason"].startswith("another process has the DuckDB file")
    assert failed.data["reason"].endswith("(the time of the run is over; the next run continues here)")
    assert project.run(pipeline)
    with duckdb.connect(str(file), read_only=True) as connection:
        assert connection.execute("SELECT id FROM orders ORDER BY id").fetchall() == [("a",), ("b",)]
