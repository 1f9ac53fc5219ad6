"""Tables of memory sinks in this process, by name."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

import pyarrow


@dataclass
class MemoryTable:
    """One table: its batches in order of arrival, and the last batch of each writer."""

    batches: list[pyarrow.Table] = field(default_factory=list)
    last: dict[str, int] = field(default_factory=dict)


_tables: dict[str, MemoryTable] = {}
_lock = threading.Lock()


def last_batch(name: str, writer: str) -> int | None:
    """Return a writer's last batch in a table, or None."""
    with _lock:
        table = _tables.get(name)
        return None if table is None else table.last.get(writer)


def store_batch(name: str, writer: str, batch: int, rows: pyarrow.Table, *, alone: bool) -> None:
    """Append a batch's rows to a table, or replace all its rows."""
    with _lock:
        table = _tables.setdefault(name, MemoryTable())
        table.batches = [rows] if alone else [*table.batches, rows]
        table.last[writer] = batch


def read_table(name: str) -> pyarrow.Table:
    """Return all rows of a table; an empty table without columns if it does not exist."""
    with _lock:
        batches = list(_tables[name].batches) if name in _tables else []
    return pyarrow.concat_tables(batches, promote_options="permissive") if batches else pyarrow.table({})
