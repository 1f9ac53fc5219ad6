"""A batch that waited is deleted only when its sink has that very batch."""

from __future__ import annotations

import json
import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from millstream.connectors.api.batch_ledger import UNTOLD, BatchMetadata, LedgerEntry
from millstream.connectors.api.writer import SinkIdentity, Writer, WriteResult
from millstream.diagnostics.failure import CheckpointMismatch, MillstreamError, Outage
from millstream.engine.delivery import spooling_writer
from millstream.engine.delivery.batch_spool import BatchSpool, SpooledBatch
from millstream.engine.delivery.spooling_writer import SpoolingWriter
from millstream.engine.failure_classifier import FailureKind, classify
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from pathlib import Path

IDENTITY = SinkIdentity("shop", "copy", "3f0c", "delta:out", OutputMode.APPEND)
PLANNED = BatchMetadata(('{"logOffset": 1}',), 1001)


class Passing(Writer):
    """A writer that passes every batch over, and what its sink says of the batch."""

    def __init__(self, found: LedgerEntry | None, last: int | None) -> None:
        super().__init__(IDENTITY)
        self.found, self.last = found, last

    def last_committed_batches(self, spark: Any) -> tuple[LedgerEntry, ...]:  # noqa: ARG002 - the contract's signature
        return () if self.last is None else (LedgerEntry(IDENTITY.key, self.last),)

    def entry(self, batch_id: int) -> LedgerEntry | None:
        return self.found if self.found is not None and self.found.batch == batch_id else None

    def write(self, frame: Any, batch_id: int) -> WriteResult:  # noqa: ARG002 - the contract's signature
        return WriteResult(is_skipped=True)


class Batch(SimpleNamespace):
    """Batch 1, without rows."""

    query, sink, batch, folder = "copy", "delta:out", 1, "_set_aside/copy/3f0c/delta%3Aout/1"
    note = PLANNED
    is_deleted = False

    def rows(self, _: Any) -> Any:
        return SimpleNamespace(schema=[])

    def forget(self) -> None:
        self.is_deleted = True


def set_aside(folder: Path, batch: int) -> None:
    note = {"reason": "away", "at": "2026-01-01T00:00:00+00:00", "schema": {}}
    (folder / str(batch)).mkdir(parents=True)
    (folder / str(batch) / "_note.json").write_text(json.dumps(note))


@pytest.mark.parametrize(("waiting", "has_begun"), [([], True), ([3, 4], True), ([0, 1], False)])
def test_a_sink_for_which_the_first_batch_waits_has_had_none(
    tmp_path: Path, waiting: list[int], *, has_begun: bool
) -> None:
    folder = tmp_path / "copy" / "3f0c" / "delta%3Aout"
    for batch in waiting:
        set_aside(folder, batch)

    writer = SpoolingWriter(IDENTITY, lambda: Passing(None, None), BatchSpool(folder), None)

    assert writer.has_begun is has_begun


def deliver(
    folder: Path, found: LedgerEntry | None, last: int | None = None
) -> tuple[Batch, WriteResult | CheckpointMismatch]:
    """Deliver batch 1 to a sink that passes it over; what happens to it, and what is returned or raised."""
    writer = SpoolingWriter(IDENTITY, lambda: Passing(found, last), BatchSpool(folder), None)
    nobody: Any = None
    columns: Any = []
    writer.open(nobody, columns)
    batch: Any = Batch()
    try:
        return batch, writer.deliver(batch, nobody)
    except CheckpointMismatch as error:
        return batch, error


@pytest.mark.parametrize("note", [PLANNED, UNTOLD], ids=["of the same plan", "by an older version"])
def test_a_batch_that_its_sink_has_is_deleted_and_told_as_skipped(
    tmp_path: Path, note: BatchMetadata
) -> None:
    batch, output = deliver(tmp_path, LedgerEntry(IDENTITY.key, 1, note=note))

    assert (batch.is_deleted, output) == (True, WriteResult(is_skipped=True))


def test_a_batch_of_which_its_sink_knows_the_number_alone_is_deleted(tmp_path: Path) -> None:
    batch, output = deliver(tmp_path, None, last=1)

    assert (batch.is_deleted, output) == (True, WriteResult(is_skipped=True))


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (None, "has later ones but not this one"),
        (LedgerEntry(IDENTITY.key, 3, note=PLANNED), "has later ones but not this one"),
        (
            LedgerEntry(IDENTITY.key, 1, note=BatchMetadata(PLANNED.offsets, 2002)),
            "has a different batch with that number",
        ),
    ],
    ids=["nothing is known", "only a later one", "another of that number"],
)
def test_a_batch_that_its_sink_passes_over_and_lacks_goes_on_waiting(
    tmp_path: Path, found: LedgerEntry | None, said: str
) -> None:
    batch, error = deliver(tmp_path, found, last=3)

    assert isinstance(error, CheckpointMismatch)
    assert said in error.what
    assert batch.folder in error.what
    assert "millstream deadletter delete copy --sink delta:out --batch 1" in error.fix
    assert not batch.is_deleted


class Taking(Writer):
    """A writer that takes every batch."""

    def __init__(self, batches: list[int]) -> None:
        super().__init__(IDENTITY)
        self.batches = batches

    def write(self, frame: Any, batch_id: int) -> WriteResult:  # noqa: ARG002 - the contract's signature
        self.batches.append(batch_id)
        return WriteResult()


class Spool(BatchSpool):
    """Batches without rows."""

    def __init__(self, folder: Path, *waiting: int) -> None:
        super().__init__(folder)
        self.waiting = [Batch(batch=number) for number in waiting]

    def oldest(self) -> Any:
        return next((batch for batch in self.waiting if not batch.is_deleted), None)

    def has_batch(self, batch: int) -> bool:
        return batch in self.numbers()

    def has_batches(self) -> bool:
        return bool(self.numbers())

    def spool(self, frame: Any, batch: int, reason: str, metadata: BatchMetadata = UNTOLD) -> None:  # noqa: ARG002 - as above
        self.waiting.append(Batch(batch=batch))

    def numbers(self) -> list[int]:
        return [batch.batch for batch in self.waiting if not batch.is_deleted]


def test_two_batches_that_wait_are_delivered_before_one_that_comes_though_no_time_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spooling_writer, "DRAIN", -1.0)
    written: list[int] = []
    spool = Spool(tmp_path, 1, 2, 3)
    writer = SpoolingWriter(IDENTITY, lambda: Taking(written), spool, None)
    nobody: Any = None
    columns: Any = []
    writer.open(nobody, columns)
    frame: Any = SimpleNamespace(schema=[], sparkSession=None)

    result = writer.write(frame, 4)

    assert (result.is_spooled, written, spool.numbers()) == (True, [1, 2], [3, 4])


class Told:
    """Events with their data."""

    def __init__(self) -> None:
        self.events: list[tuple[str, dict[str, Any]]] = []

    def emit(self, event: str, _: str, **data: Any) -> None:
        self.events.append((event, data))


def test_each_event_of_a_spool_says_how_many_batches_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "copy" / "3f0c" / "delta%3Aout"
    for batch in (1, 2, 3):
        set_aside(folder, batch)
    monkeypatch.setattr(SpooledBatch, "rows", lambda *_: SimpleNamespace(schema=[]))
    monkeypatch.setattr(BatchSpool, "spool", lambda spool, _, batch, *__: set_aside(spool.folder, batch))
    messages: Any = Told()
    frame: Any = SimpleNamespace(schema=[])
    writer = SpoolingWriter(IDENTITY, lambda: Taking([]), BatchSpool(folder), messages)

    writer.report_spooled()
    writer.write(frame, 4)
    writer._session = frame
    writer.open(frame, frame.schema)
    writer.deliver_spooled(threading.Event())
    writer.report_spooled()

    assert messages.events[0] == (
        "still_spooled",
        {"sink": "delta:out", "batches": 3, "reason": "away", "since": "2026-01-01T00:00:00.000Z"},
    )
    assert [(event, data.get("batch"), data["batches"]) for event, data in messages.events[1:]] == [
        ("set_aside", 4, 4),
        *[("delivered_later", batch, 4 - batch) for batch in (1, 2, 3, 4)],
    ]


class Database:
    """A database with a ledger, which may be away."""

    def __init__(self) -> None:
        self.batches: list[int] = []
        self.is_away = False
        self.without_effect: set[int] = set()
        self.hidden = 0


class Store(Writer):
    """A writer into that database."""

    has_ledger = True

    def __init__(self, database: Database) -> None:
        super().__init__(IDENTITY)
        self.database = database

    def last_committed_batches(self, spark: Any) -> tuple[LedgerEntry, ...]:  # noqa: ARG002 - the contract's signature
        visible = self.database.batches[: len(self.database.batches) - self.database.hidden]
        return tuple(LedgerEntry(IDENTITY.key, batch) for batch in visible[-1:])

    def write(self, frame: Any, batch_id: int) -> WriteResult:  # noqa: ARG002 - the contract's signature
        if self.database.is_away:
            raise Outage("the database is away", "start it")
        if batch_id not in self.database.without_effect:
            self.database.batches.append(batch_id)
        return WriteResult(rows=3, is_recorded=batch_id not in self.database.without_effect)

    def newest(self, spark: Any) -> LedgerEntry | None:  # noqa: ARG002 - as above
        return next((LedgerEntry(IDENTITY.key, batch) for batch in self.database.batches[-1:]), None)


@pytest.mark.parametrize("lost", [0, 1, 6])
def test_a_sink_that_comes_back_without_the_batches_of_this_run_is_not_written_past(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lost: int
) -> None:
    monkeypatch.setattr(spooling_writer, "PATIENCE", 0.0)
    monkeypatch.setattr(BatchSpool, "spool", lambda *_: None)
    database, frame = Database(), SimpleNamespace(schema=[])
    writer: Any = SpoolingWriter(IDENTITY, lambda: Store(database), BatchSpool(tmp_path), None)
    writer.open(None, [])
    for number in range(6):
        assert writer.write(frame, number).rows == 3
    database.is_away = True
    assert writer.write(frame, 6).is_spooled
    database.is_away = False
    database.batches = database.batches[: 6 - lost]

    if lost:
        with pytest.raises(CheckpointMismatch, match="no longer has batch 5, which this run has written"):
            writer.write(frame, 7)
    else:
        assert writer.write(frame, 7).rows == 3
    assert database.batches == [*range(6 - lost), *([] if lost else [7])]


@pytest.mark.parametrize(
    "why", ["the last batch changed nothing", "an open transaction hides the last batch"]
)
def test_a_batch_that_the_ledger_does_not_show_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    monkeypatch.setattr(spooling_writer, "PATIENCE", 0.0)
    monkeypatch.setattr(BatchSpool, "spool", lambda *_: None)
    database, frame = Database(), SimpleNamespace(schema=[])
    if why == "the last batch changed nothing":
        database.without_effect = {1}
    writer: Any = SpoolingWriter(IDENTITY, lambda: Store(database), BatchSpool(tmp_path), None)
    writer.open(None, [])
    writer.write(frame, 0)
    writer.write(frame, 1)
    database.is_away = True
    writer.write(frame, 2)
    database.is_away, database.hidden = False, 0 if database.without_effect else 1

    writer.write(frame, 3)

    assert database.batches[-1] == 3


@pytest.mark.parametrize(
    ("refusal", "failure", "cause"),
    [
        (
            MillstreamError("table t rejects a row"),
            OSError(28, "No space left on device"),
            FailureKind.OUTAGE,
        ),
        (
            Outage("the database is away"),
            ValueError("[CAST_INVALID_INPUT] 'x' is no INT"),
            FailureKind.DEFECT,
        ),
    ],
    ids=["the disk is full", "a record cannot be cast"],
)
def test_what_keeps_a_batch_from_being_spooled_decides_what_becomes_of_the_query(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    refusal: Exception,
    failure: Exception,
    cause: FailureKind,
) -> None:
    def fail(*_: Any) -> None:
        raise failure

    monkeypatch.setattr(spooling_writer, "PATIENCE", 0.0)
    monkeypatch.setattr(BatchSpool, "spool", fail)
    monkeypatch.setattr(Store, "write", lambda *_: (_ for _ in ()).throw(refusal))
    writer: Any = SpoolingWriter(IDENTITY, lambda: Store(Database()), BatchSpool(tmp_path), None)
    writer.open(None, [])

    with pytest.raises(type(failure)) as raised:
        writer.write(SimpleNamespace(schema=[]), 0)

    assert classify(None, raised.value).cause is cause
    assert raised.value.__notes__ == ["Batch 0 could not be spooled for sink 'delta:out'."]


def failing_writer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> tuple[Any, list[int]]:
    """A writer whose sink fails with an error, and the batches that it spools."""
    spooled: list[int] = []
    monkeypatch.setattr(spooling_writer, "PATIENCE", 0.0)
    monkeypatch.setattr(BatchSpool, "spool", lambda _, __, batch, *___: spooled.append(batch))
    monkeypatch.setattr(Store, "write", lambda *_: (_ for _ in ()).throw(error))
    writer: Any = SpoolingWriter(IDENTITY, lambda: Store(Database()), BatchSpool(tmp_path), None)
    writer.open(None, [])
    return writer, spooled


@pytest.mark.parametrize(
    "refusal",
    [
        MillstreamError('table t rejects a row: invalid input value for enum state: "cancelled"'),
        MillstreamError("table t rejects a row: invalid token: Job 7 cancelled"),
        MillstreamError("java.lang.InterruptedException: sleep interrupted"),
        ValueError("[CAST_INVALID_INPUT] The value 'cancelled' cannot be cast to INT"),
        ValueError("[CAST_INVALID_INPUT] The value 'java.lang.InterruptedException' cannot be cast to INT"),
    ],
    ids=["an enum", "a job in a refused row", "a trace in a refused row", "a cast", "a trace in a cast"],
)
def test_a_refusal_that_quotes_a_row_about_something_cancelled_spools_the_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refusal: Exception
) -> None:
    writer, spooled = failing_writer(tmp_path, monkeypatch, refusal)

    result = writer.write(SimpleNamespace(schema=[]), 0)

    assert (result.is_spooled, spooled) == (True, [0])


@pytest.mark.parametrize(
    "text",
    [
        ": org.apache.spark.SparkException: [SPARK_JOB_CANCELLED] Job 7 cancelled part of cancelled job group 3f",
        "org.apache.spark.SparkException: Job 7 cancelled because SparkContext was shut down",
        "TaskKilled (Stage cancelled: Job 7 cancelled part of cancelled job group 3f)",
        "An error occurred while calling z:java.lang.Thread.sleep.\n: java.lang.InterruptedException: sleep",
        "Writing failed\n\tat x.Y.z(Y.java:1)\nCaused by: java.io.InterruptedIOException: Interrupted waiting",
        "java.io.IOException: java.lang.InterruptedException",
        "[Errno 5] InterruptedIOException",
    ],
)
def test_a_batch_that_was_stopped_from_outside_is_not_spooled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    writer, spooled = failing_writer(tmp_path, monkeypatch, RuntimeError(text))

    with pytest.raises(RuntimeError):
        writer.write(SimpleNamespace(schema=[]), 0)

    assert spooled == []
