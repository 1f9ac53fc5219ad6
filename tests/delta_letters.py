"""Dead letters that are written to a Delta table, and read from it, without Spark."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from millstream.connectors.api.values.dead_letter_rows import SCHEMA
from millstream.connectors.api.writer import SinkIdentity
from millstream.connectors.delta.dead_letter_table import read_rows
from millstream.connectors.delta.dead_letter_writer import DeltaDeadLetterWriter
from millstream.spec.location import Location
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from pathlib import Path

# No Spark is needed but to wait for the lock.
SPARK: Any = SimpleNamespace()


def writer_of(folder: Path, query: str = "copy") -> DeltaDeadLetterWriter:
    identity = SinkIdentity("shop", query, query, "dead_letters", OutputMode.APPEND)
    return DeltaDeadLetterWriter(Location(folder), identity)


def keep(writer: DeltaDeadLetterWriter, batch_id: int, query: str = "copy", value: bytes = b"{") -> None:
    letter: dict[str, object] = {
        "query": query,
        "source": "orders",
        "value": value,
        "reason": "the value is not JSON",
    }
    letter |= {"batch_id": batch_id, "at": datetime(2026, 1, 1, tzinfo=UTC)}
    writer.keep_rows(SPARK, pa.Table.from_pylist([letter], schema=SCHEMA), batch_id)


def read_batches(folder: Path, query: str = "copy") -> list[int]:
    return sorted(letter.batch_id for letter in read_rows(Location(folder)) if letter.query == query)


def log_entries(folder: Path) -> list[str]:
    return sorted(file.name for file in (folder / "_delta_log").iterdir())


def files_with(folder: Path, text: bytes) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and text in path.read_bytes()]
