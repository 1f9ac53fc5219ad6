"""The thread that delivers spooled batches, while the file system of the spool is away."""

from __future__ import annotations

import json
import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from millstream.connectors.api.batch_ledger import LedgerEntry
from millstream.connectors.api.writer import SinkIdentity, Writer, WriteResult
from millstream.diagnostics.failure import Outage
from millstream.engine.delivery import spool_retry, spooling_writer
from millstream.engine.delivery.batch_spool import BatchSpool, SpooledBatch
from millstream.engine.delivery.spool_retry import SpoolRetry
from millstream.engine.delivery.spooling_writer import SpoolingWriter
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

IDENTITY = SinkIdentity("shop", "copy", "3f0c", "delta:out", OutputMode.APPEND)
SPARK: Any = SimpleNamespace(sparkContext=SimpleNamespace(setLocalProperty=lambda *_: None))


class Returning(Writer):
    """A writer whose sink is away when it is opened for the first time, and then has batch 1."""

    opened = 0

    def open(self, *_: Any) -> None:
        Returning.opened += 1
        if Returning.opened == 1:
            raise Outage("the sink is away")

    def entry(self, batch_id: int) -> LedgerEntry:
        return LedgerEntry(self.identity.key, batch_id)

    def write(self, *_: Any) -> WriteResult:
        return WriteResult(is_skipped=True)


class Delivered(threading.Event):
    """Set by the event of a later delivery."""

    def emit(self, event: str, *_: str, **__: Any) -> None:
        if event == "delivered_later":
            self.set()


def test_a_spool_that_cannot_be_listed_once_is_delivered_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "copy" / "3f0c" / "delta%3Aout"
    (folder / "1").mkdir(parents=True)
    note = {"reason": "away", "at": "2026-01-01T00:00:00+00:00", "schema": {}}
    (folder / "1" / "_note.json").write_text(json.dumps(note))
    monkeypatch.setattr(spool_retry, "EVERY", 0.01)
    monkeypatch.setattr(spooling_writer, "FIRST_PROBE", 0.0)
    monkeypatch.setattr(SpooledBatch, "rows", lambda *_: SimpleNamespace(schema=[]))
    monkeypatch.setattr(Returning, "opened", 0)
    delivered: Any = Delivered()
    writer = SpoolingWriter(IDENTITY, lambda: Returning(IDENTITY), BatchSpool(folder), delivered)
    writer._session = SPARK
    no_columns: Any = []
    writer.open(SPARK, no_columns)
    has_batches, failures = BatchSpool.has_batches, [ConnectionError("the name node is away")]

    def fail_once(self: BatchSpool) -> bool:
        if failures:
            raise failures.pop()
        return has_batches(self)

    monkeypatch.setattr(BatchSpool, "has_batches", fail_once)
    retry = SpoolRetry("copy", [writer])

    retry.start(SPARK)

    assert delivered.wait(60)
    retry.close()
    assert (failures, BatchSpool(folder).batches()) == ([], [])
