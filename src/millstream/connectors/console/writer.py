"""Print batches as tables."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import click
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from millstream.connectors.api.writer import SinkIdentity, Writer, WriteResult

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

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
        """Print the batch's first rows and its row count."""
        count = frame.count()
        rows = [[_cell(value) for value in row] for row in frame.take(self.sink.num_rows)]
        click.echo(self.block(frame.columns, rows, batch_id, count), nl=False)
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


def _cell(value: object) -> str:
    return "NULL" if value is None else str(value)


def _escape(text: str) -> str:
    """Escape characters that would control a terminal."""
    return "".join(character if character.isprintable() else f"\\x{ord(character):02x}" for character in text)
