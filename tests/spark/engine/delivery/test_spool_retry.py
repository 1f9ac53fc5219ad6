"""A sink that is back gets what waits though no batch comes, and one that is silent holds nobody up."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

from millstream.connectors.api.writer import SinkIdentity, Writer, WriteResult
from millstream.diagnostics.failure import CheckpointError, Outage
from millstream.engine.delivery import spool_retry, spooling_writer
from millstream.engine.delivery.batch_spool import BatchSpool
from millstream.engine.delivery.spool_retry import SpoolRetry
from millstream.engine.delivery.spooling_writer import SpoolingWriter
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

IDENTITY = SinkIdentity("shop", "copy", "one-checkpoint", "table", OutputMode.APPEND)
# So long, in seconds, a test waits for the other thread before it fails.
LONG = 60.0


class Sink:
    """A sink that is down, silent or taken over, and what it has got."""

    def __init__(self) -> None:
        self.error: Exception | None = Outage("away", "wait")
        self.got: list[int] = []
        self.has = threading.Condition()
        self.asked = threading.Event()
        self.answers = threading.Event()
        self.answers.set()

    def wait_for(self, batches: list[int]) -> bool:
        """Has it got these, in this order, in time?"""
        with self.has:
            return self.has.wait_for(lambda: self.got == batches, LONG)


class To(Writer):
    """Writes to it."""

    def __init__(self, sink: Sink) -> None:
        super().__init__(IDENTITY)
        self.sink = sink

    def open(self, spark: SparkSession, schema: Any) -> None:  # noqa: ARG002 - the contract's signature
        self.sink.asked.set()
        self.sink.answers.wait(LONG)
        if self.sink.error is not None:
            raise self.sink.error

    def write(self, frame: DataFrame, batch_id: int) -> WriteResult:
        if self.sink.error is not None:
            raise self.sink.error
        assert [row.id for row in frame.collect()] == [batch_id]
        with self.sink.has:
            self.sink.got.append(batch_id)
            self.sink.has.notify_all()
        return WriteResult(1)


class Held:
    """A writer before a sink, with two batches set aside, and the thread that asks."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.sink = Sink()
        self.shelf = BatchSpool(folder / "copy" / "one-checkpoint" / "table")
        self.writer = SpoolingWriter(IDENTITY, lambda: To(self.sink), self.shelf, None)
        self.writer.open(spark, self.rows(0).schema)
        self.probing = SpoolRetry("copy", [self.writer])
        self.write(0)
        self.write(1)

    def rows(self, batch: int) -> DataFrame:
        return self.spark.range(batch, batch + 1, numPartitions=1)

    def write(self, batch: int) -> WriteResult:
        return self.writer.write(self.rows(batch), batch)


@pytest.fixture
def held_sink(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Held]:
    monkeypatch.setattr(spooling_writer, "PATIENCE", 0.0)
    monkeypatch.setattr(spooling_writer, "FIRST_PROBE", 0.0)
    monkeypatch.setattr(spooling_writer, "LAST_PROBE", 0.0)
    monkeypatch.setattr(spool_retry, "EVERY", 0.01)
    result = Held(spark, tmp_path)
    yield result
    result.sink.answers.set()
    result.probing.close()
    result.writer.close()


def test_what_waits_is_delivered_in_order_though_no_batch_comes(held_sink: Held) -> None:
    held_sink.sink.error = None

    held_sink.probing.start(held_sink.spark)

    assert held_sink.sink.wait_for([0, 1])


def test_a_sink_that_does_not_answer_holds_no_batch_up(held_sink: Held) -> None:
    held_sink.sink.answers.clear()
    held_sink.sink.asked.clear()
    held_sink.probing.start(held_sink.spark)
    assert held_sink.sink.asked.wait(LONG)

    # Returns while the other thread still waits for the sink.
    write_result = held_sink.write(2)

    assert (write_result.is_spooled, held_sink.sink.answers.is_set()) == (True, False)


def test_batches_that_come_meanwhile_are_delivered_behind_those_that_wait(held_sink: Held) -> None:
    held_sink.sink.error = None
    held_sink.probing.start(held_sink.spark)

    for batch in range(2, 12):
        held_sink.write(batch)

    assert held_sink.sink.wait_for(list(range(12)))


def test_a_sink_that_goes_away_again_gets_each_batch_once(held_sink: Held) -> None:
    held_sink.sink.error = None
    held_sink.probing.start(held_sink.spark)
    assert held_sink.sink.wait_for([0, 1])
    held_sink.sink.error = Outage("away again", "wait")
    for batch in range(2, 5):
        held_sink.write(batch)

    held_sink.sink.error = None

    assert held_sink.sink.wait_for([0, 1, 2, 3, 4])
    held_sink.probing.close()
    assert not held_sink.shelf.has_batches()


def test_a_sink_that_is_taken_over_ends_the_query_with_its_next_batch(held_sink: Held) -> None:
    held_sink.sink.error = CheckpointError("another run writes it", "stop it")
    held_sink.sink.asked.clear()
    held_sink.probing.start(held_sink.spark)
    assert held_sink.sink.asked.wait(LONG)
    held_sink.probing.close()

    with pytest.raises(CheckpointError):
        held_sink.write(3)
