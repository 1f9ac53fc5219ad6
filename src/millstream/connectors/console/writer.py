"""Print batches as tables."""

from __future__ import annotations

import io
import sys
from datetime import datetime
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from millstream.connectors.api.writer import SinkIdentity, Writer, WriteResult

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

    from millstream.connectors.console.sink import ConsoleSink

_DEFAULT_LENGTH = 20


class ConsoleWriter(Writer):
    """Prints each batch at once, so that other terminal output does not interrupt it."""

    # One execution for the shown rows, and one for the count.
    passes = 2

    def __init__(self, sink: ConsoleSink, identity: SinkIdentity) -> None:
        super().__init__(identity)
        self.sink = sink

    def write(self, frame: DataFrame, batch_id: int) -> WriteResult:
        """Print the batch's first rows, by time, and its row count. An empty batch prints nothing."""
        count = frame.count()
        taken = _sort_by_time(frame.take(self.sink.num_rows))
        rows = [[_cell(value) for value in row] for row in taken]
        if count:
            # Not by click, which writes to the terminal itself: the live table of `run` redirects this stream.
            sys.stdout.write(self.block(frame.columns, rows, batch_id, count))
            sys.stdout.flush()
        return WriteResult(count)

    def block(self, names: list[str], rows: list[list[str]], batch_id: int, count: int) -> str:
        """Format a batch: a heading, the table, and the number of omitted rows."""
        table = Table(box=box.SQUARE, show_edge=False, pad_edge=False)
        for name in names:
            table.add_column(Text(_escape(name)), no_wrap=True)
        for row in rows:
            table.add_row(*(Text(self._truncate(_escape(cell))) for cell in row))
        out = io.StringIO()
        # Wide enough for any content, because a console of fixed width would cut what `truncate` keeps.
        console = Console(file=out, width=1_000_000, color_system=None, legacy_windows=False)
        console.print(
            Text(f"{self.identity.query}, batch {batch_id}: {count} row{'' if count == 1 else 's'}")
        )
        if rows:
            console.print(table)
        if count > len(rows):
            console.print(Text(f"… and {count - len(rows)} more"))
        lines = [line.rstrip() for line in out.getvalue().splitlines()]
        return "\n".join(lines) + "\n\n"

    def _truncate(self, text: str) -> str:
        if self.sink.truncate is False:
            return text
        max_length = _DEFAULT_LENGTH if self.sink.truncate is True else self.sink.truncate
        return text if len(text) <= max_length else text[: max(0, max_length - 1)] + "…"


def _sort_by_time(rows: list[Row]) -> list[Row]:
    """Sort rows by their leading columns if these begin with a time, such as a window and its key."""
    if not rows or not all(row and isinstance(row[0], datetime) for row in rows):
        return rows
    width = 1
    while width < len(rows[0]) and all(isinstance(row[width], str) for row in rows):
        width += 1
    return sorted(rows, key=lambda row: tuple(row[:width]))


def _cell(value: object) -> str:
    return "NULL" if value is None else str(value)


def _escape(text: str) -> str:
    """Escape characters that would control a terminal."""
    return "".join(character if character.isprintable() else f"\\x{ord(character):02x}" for character in text)
