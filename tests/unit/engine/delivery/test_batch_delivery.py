"""A batch that a sink passes over, held against what the sink says it has."""

from __future__ import annotations

import json
import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from millstream.checkpoint.folder import Checkpoint
from millstream.connectors.api.batch_ledger import BatchMetadata, LedgerEntry
from millstream.connectors.api.writer import SinkIdentity, Writer, WriteResult
from millstream.diagnostics.failure import CheckpointError, CheckpointMismatch
from millstream.engine.delivery.batch_delivery import Delivery
from millstream.engine.delivery.batch_metadata import BatchNotes
from millstream.engine.delivery.repeated_runs import TaskReruns
from millstream.engine.events.progress_listener import ROWS_OUT
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from pathlib import Path

MINE = BatchMetadata(('{"clicks":{"0":7}}',), 1000, "2:40")


class Holding(Writer):
    """Has the batch already, as another driver wrote it."""

    def __init__(self, note: BatchMetadata | None) -> None:
        super().__init__(SinkIdentity("shop", "q", "3f0c", "parquet:out", OutputMode.APPEND))
        self.there = note

    def entry(self, batch_id: int) -> LedgerEntry | None:
        return None if self.there is None else LedgerEntry(self.identity.key, batch_id, 5, self.there)

    def write(self, frame: Any, batch_id: int) -> WriteResult:  # noqa: ARG002
        return WriteResult(is_skipped=True)


class Notes:
    """Those of a batch whose rows have passed."""

    content = False
    may_count_twice = None

    def running(self, batch_id: int, handle: Any) -> None: ...

    def passed(self, batch_id: int) -> int:  # noqa: ARG002
        return 2

    def __call__(self, batch_id: int) -> BatchMetadata:  # noqa: ARG002
        return MINE


class Told:
    """Events, kept."""

    def __init__(self) -> None:
        self.events: list[str] = []

    def emit(self, event: str, *_: Any, **__: Any) -> None:
        self.events.append(event)


def deliver(note: BatchMetadata | None) -> tuple[Delivery, list[str]]:
    """Deliver a batch to a sink that has it with that note; gives what is told."""
    told = Told()
    delivery = Delivery("q", {"parquet:out": Holding(note)}, None, told, Notes(), None)  # type: ignore[arg-type]
    delivery._ready.set()
    delivery(None, 3)  # type: ignore[arg-type]
    return delivery, told.events


def delivered(note: BatchMetadata | None) -> list[str]:
    return [event for event in deliver(note)[1] if event not in ("batch_started", "batch_written")]


def test_a_batch_is_told_as_it_begins_and_as_it_is_written() -> None:
    delivery, events = deliver(MINE)

    assert (events, delivery.has_delivered) == (["batch_started", "batch_written"], True)


@pytest.mark.parametrize("note", [MINE, BatchMetadata(), None, BatchMetadata(MINE.offsets, MINE.planned)])
def test_the_same_batch_is_passed_over_in_silence(note: BatchMetadata | None) -> None:
    assert delivered(note) == []


@pytest.mark.parametrize(
    "note", [BatchMetadata(('{"clicks":{"0":8}}',), 1000), BatchMetadata(MINE.offsets, 1001)]
)
def test_a_batch_of_other_records_ends_the_query(note: BatchMetadata) -> None:
    with pytest.raises(CheckpointMismatch, match="already has a batch 3 of query 'q' with other records"):
        delivered(note)


def test_a_batch_of_other_rows_is_a_warning() -> None:
    assert delivered(BatchMetadata(MINE.offsets, MINE.planned, "2:41")) == ["warning"]


def test_a_run_whose_checkpoint_another_run_has_taken_over_delivers_no_batch_to_any_sink(
    tmp_path: Path,
) -> None:
    told = Told()
    writers = {"parquet:out": Holding(MINE)}
    delivery = Delivery("q", writers, None, told, Notes(), None, checkpoint=tmp_path)  # type: ignore[arg-type]
    delivery._ready.set()
    delivery(None, 3)  # type: ignore[arg-type]
    written = list(told.events)
    lock = tmp_path / "_millstream" / "lock"
    lock.parent.mkdir()
    lock.write_text(json.dumps({"owner": "shop.q", "pid": 1, "host": "elsewhere", "since": "noon"}))

    with pytest.raises(CheckpointError, match=r"taken over by 'shop\.q' \(process 1 on elsewhere"):
        delivery(None, 4)  # type: ignore[arg-type]

    assert told.events == written == ["batch_started", "batch_written"]


@pytest.mark.parametrize(("reruns", "warnings"), [(False, ["warning"]), (True, [])])
def test_rows_that_spark_counted_twice_are_not_told_as_other_rows(
    reruns: bool, warnings: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "metadata").write_text(json.dumps({"id": "3f0c"}))
    notes, told = BatchNotes(Checkpoint(tmp_path), "3f0c"), Told()
    notes.content = True
    metric = SimpleNamespace(isEmpty=lambda: False, get=lambda: SimpleNamespace(getAs=lambda _: 2))
    execution = SimpleNamespace(observedMetrics=lambda: {ROWS_OUT: metric})
    watched = SimpleNamespace(may_count_twice=lambda run_id, *, is_cached: (run_id, is_cached) and reruns)
    monkeypatch.setattr(TaskReruns, "watch", lambda _: watched)
    delivery = Delivery("q", {"parquet:out": Holding(MINE)}, None, told, notes, None)  # type: ignore[arg-type]
    delivery.handle = SimpleNamespace(runId=lambda: "77aa", lastExecution=lambda: execution)
    delivery._ready.set()

    master = SimpleNamespace(sparkContext=SimpleNamespace(master="spark://cluster:7077"))
    delivery(SimpleNamespace(sparkSession=master), 3)  # type: ignore[arg-type]

    assert [event for event in told.events if event == "warning"] == warnings


def test_a_batch_that_waits_for_a_start_that_failed_is_let_go() -> None:
    delivery = Delivery("q", {"parquet:out": Holding(None)}, None, Told(), Notes(), None)  # type: ignore[arg-type]
    batch = threading.Thread(target=delivery, args=(None, 3), daemon=True)
    batch.start()

    delivery.close()

    batch.join(60)
    assert not batch.is_alive()
