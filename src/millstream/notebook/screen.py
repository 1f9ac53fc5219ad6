"""Show a view in the cell of a notebook or on standard output."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from html import escape
from typing import Any, Protocol

import click
import pandas as pd
from pandas.api import types

from millstream.cli.table import format_table
from millstream.notebook.plot import Axes, draw_svg

# Number of rows in the table; the plot uses all rows.
SHOWN = 20


@dataclass(frozen=True)
class DisplaySnapshot:
    """The content of a display at one moment."""

    title: str
    state: str
    rows: pd.DataFrame
    """The rows, newest first."""
    axes: Axes | None

    def html(self) -> str:
        """Return heading, plot and table as HTML, with all values of rows escaped."""
        heading = f"<b>{escape(self.title)}</b> <small>{escape(self.state)}</small>"
        body = self.rows.head(SHOWN).to_html(index=False, border=0, na_rep="NULL", escape=True)
        return f"<div>{heading}<br>{draw_svg(self.rows, self.axes)}{body if len(self.rows.columns) else ''}</div>"

    def text(self) -> str:
        """Return heading and table as text, with terminal control characters escaped."""
        rows = [[_plain(value) for value in row] for row in self.rows.head(SHOWN).itertuples(index=False)]
        names = [str(name) for name in self.rows.columns]
        return f"{self.title}: {self.state}\n{format_table(names, rows) if names else ''}"


class SnapshotOutput(Protocol):
    """An output that shows one snapshot after another."""

    def show(self, sight: DisplaySnapshot) -> None:
        """Show a snapshot instead of the last one, or below it."""


class Cell:
    """The output of one cell, updated in place, also by a thread after the cell has ended."""

    def __init__(self, name: str, shell: Any) -> None:
        self._name = name
        self._is_shown = False
        self._publish = shell.display_pub.publish

    def show(self, sight: DisplaySnapshot) -> None:
        """Replace the output of the cell."""
        data = {"text/html": sight.html(), "text/plain": sight.text()}
        self._publish(data, {}, transient={"display_id": self._name}, update=self._is_shown)
        self._is_shown = True


class Output:
    """Standard output, for a program outside a notebook."""

    def show(self, sight: DisplaySnapshot) -> None:
        """Print the snapshot below the last one."""
        click.echo(sight.text())


def notebook_kernel() -> Any:
    """Return IPython's shell if this process is a notebook kernel, else None. Works without IPython installed."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell if hasattr(shell, "kernel") else None


def running_cell_id(shell: Any) -> str | None:
    """Return the id of the running cell, if the notebook provides it."""
    metadata = shell.get_parent().get("metadata", {}) if shell is not None else {}
    cell_id = metadata.get("cellId")
    return str(cell_id) if cell_id else None


def _plain(value: Any) -> object:
    if types.is_scalar(value) and pd.isna(value):
        return None
    return value.to_pydatetime() if isinstance(value, pd.Timestamp) else value
