"""The tables that memory sinks keep in this process, by name."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

import pyarrow


@dataclass
class Kept:
    """One table: its batches in the order they came, and the last batch of each writer."""

    batches: list[pyarrow.Table] = field(default_factory=list)
    last: dict[str, int] = field(default_factory=dict)


_tables: dict[str, Kept] = {}
_lock = threading.Lock()


def last(name: str, writer: str) -> int | None:
    """The last batch that a table has of a writer, or None."""
    with _lock:
        kept = _tables.get(name)
        return None if kept is None else kept.last.get(writer)


def keep(name: str, writer: str, batch: int, rows: pyarrow.Table, *, alone: bool) -> None:
    """Add a batch's rows to a table, or put them in the place of all its rows."""
    with _lock:
        kept = _tables.setdefault(name, Kept())
        kept.batches = [rows] if alone else [*kept.batches, rows]
        kept.last[writer] = batch


def held(name: str) -> pyarrow.Table:
    """All rows of a table; no column and no row when there is none of that name."""
    with _lock:
        batches = list(_tables[name].batches) if name in _tables else []
    return pyarrow.concat_tables(batches, promote_options="permissive") if batches else pyarrow.table({})
