"""Prints batches as tables."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import click
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from millstream.connectors.sink import SinkIdentity, Writer, Written

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from millstream.connectors.console.sink import ConsoleSink

_USUAL = 20


class ConsoleWriter(Writer):
    """Prints each batch in one piece, so that what else a terminal shows is not torn."""

    # The rows that are shown, and how many there are: one run of the batch each would be two.
    passes = 2

    def __init__(self, sink: ConsoleSink, identity: SinkIdentity) -> None:
        super().__init__(identity)
        self.sink = sink

    def write(self, frame: DataFrame, batch_id: int) -> Written:
        """Print the batch's first rows, and how many there are."""
        count = frame.count()
        rows = [[_cell(value) for value in row] for row in frame.take(self.sink.num_rows)]
        click.echo(self.block(frame.columns, rows, batch_id, count), nl=False)
        return Written(count)

    def block(self, names: list[str], rows: list[list[str]], batch_id: int, count: int) -> str:
        """The text of one batch: a heading, the table, and what was left out."""
        table = Table(box=box.SQUARE, show_edge=False, pad_edge=False)
        for name in names:
            table.add_column(Text(_shown(name)), no_wrap=True)
        for row in rows:
            table.add_row(*(Text(self._cut(_shown(cell))) for cell in row))
        out = io.StringIO()
        # As wide as its contents: a console of fixed width would cut what `truncate` lets stand.
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

    def _cut(self, text: str) -> str:
        if self.sink.truncate is False:
            return text
        most = _USUAL if self.sink.truncate is True else self.sink.truncate
        return text if len(text) <= most else text[: max(0, most - 1)] + "…"


def _cell(value: object) -> str:
    return "NULL" if value is None else str(value)


def _shown(text: str) -> str:
    """The text without characters that would steer a terminal."""
    return "".join(sign if sign.isprintable() else f"\\x{ord(sign):02x}" for sign in text)
