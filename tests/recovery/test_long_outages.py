"""A sink whose server is stopped for many batches: the other sink waits for nothing, and each row comes once."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, Any

import pytest

import sweep
from delta_tables import read_parquet_rows
from millstream.connectors.kafka import transactions
from millstream.devstack import stack as servers
from millstream.devstack.servers import topics
from millstream.engine.delivery.batch_spool import list_spooled_batches
from millstream.engine.delivery.spool_replay import replay
from millstream.engine.events.event_bus import Event, EventBus
from millstream.engine.run import RunOptions, run_pipeline
from millstream.pipeline.model import Pipeline
from recovery import outage

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from millstream.devstack.supervisor.state import Endpoints

pytestmark = pytest.mark.usefixtures("small_batches")
# An hour of batches of twelve seconds is 300: MILLSTREAM_OUTAGE=300 pytest tests/recovery/test_long_outages.py
AWAY = sweep.size(3, 12, "MILLSTREAM_OUTAGE")
BEFORE, AFTER = 2, 2
ALL = BEFORE + AWAY + AFTER


@pytest.fixture
def restarted_stack(stack: Endpoints) -> Iterator[Endpoints]:
    """The servers of all tests, which run again afterwards, whatever became of them here."""
    yield stack
    for server in servers.SERVERS:
        servers.start(stack.folder, server)


class Away:
    """Stops a server after some batches, and starts it after some that were set aside."""

    def __init__(self, stack: Endpoints, server: str) -> None:
        self.stack, self.server = stack, server
        self.events: list[Event] = []

    def __call__(self, event: Event) -> None:
        self.events.append(event)
        if event.event == "batch_committed" and len(self.list_events("batch_committed")) == BEFORE:
            servers.stop(self.stack.folder, self.server)
        if event.event == "set_aside" and len(self.list_events("set_aside")) == AWAY:
            servers.start(self.stack.folder, self.server)

    def list_events(self, name: str) -> list[Event]:
        return [event for event in self.events if event.event == name]


def run_during_outage(
    spark: SparkSession, folder: Path, stack: Endpoints, server: str, sink: dict[str, Any]
) -> Away:
    """All batches, with the server away in the middle; then a replay of what still waits."""
    outage.write_input(folder, ALL)
    spec = {**outage.spec(folder, sink), "folder": folder}
    pipeline = Pipeline.model_validate(spec, context={"folder": folder})
    away, events = Away(stack, server), EventBus()
    events.listen(away)
    assert run_pipeline(spark, pipeline, RunOptions(until_caught_up=True), events, {})
    events.close()
    servers.start(stack.folder, server)
    replay(spark, pipeline, ["copy"], None, lambda *_: None)
    assert list_spooled_batches(pipeline, ["copy"]) == []
    return away


def others_lost_nothing_and_waited_for_nothing(folder: Path, away: Away) -> None:
    """The other sink has every row, and of the batches of the outage the first alone waited."""
    rows = sorted(read_parquet_rows(folder / "out", "key", "n"))
    assert rows == [(key, n) for key in outage.KEYS for n in range(ALL)]
    batches = {event.data["batch"] for event in away.list_events("set_aside")}
    seconds = [
        event.data["duration_ms"]["triggerExecution"]
        for event in away.list_events("batch_committed")
        if event.data["batch"] in batches
    ]
    # The first was waited out, as `on_error` says, for many times what a batch takes on a loaded machine.
    assert statistics.median(seconds[1:]) < seconds[0] / 2


@pytest.mark.timeout(300 + 4 * AWAY)
def test_postgres_gets_each_row_once_and_in_order_after_an_outage(
    spark: SparkSession, tmp_path: Path, restarted_stack: Endpoints
) -> None:
    sink = outage.table(restarted_stack, "long_outage")

    away = run_during_outage(spark, tmp_path, restarted_stack, "postgres", sink)

    assert len(away.list_events("set_aside")) >= AWAY
    assert outage.in_table(restarted_stack, "long_outage") == outage.expected_rows(ALL)
    others_lost_nothing_and_waited_for_nothing(tmp_path, away)


@pytest.mark.timeout(300 + 4 * AWAY)
def test_a_transactional_topic_gets_each_row_once_and_in_order_after_an_outage(
    spark: SparkSession, tmp_path: Path, restarted_stack: Endpoints, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transactions, "PATIENCE", 5.0)
    topics.create_topics(restarted_stack.kafka, {"long-outage": {"partitions": "3"}})
    sink = outage.topic(restarted_stack, "long-outage")

    away = run_during_outage(spark, tmp_path, restarted_stack, "kafka", sink)

    assert len(away.list_events("set_aside")) >= AWAY
    assert outage.in_topic(restarted_stack, "long-outage") == outage.expected_rows(ALL)
    others_lost_nothing_and_waited_for_nothing(tmp_path, away)
