"""Where a view is shown: the cell of a notebook, or the output of a program."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from html import escape
from typing import Any, Protocol

import click
import pandas as pd
from pandas.api import types

from millstream.cli.table import table
from millstream.notebook.plot import Axes, svg

# Rows of the table; the plot draws all that are kept.
SHOWN = 20


@dataclass(frozen=True)
class Sight:
    """What is to be seen at one moment."""

    title: str
    state: str
    rows: pd.DataFrame
    """The newest first."""
    axes: Axes | None

    def html(self) -> str:
        """The heading, the plot and the table; whatever came out of the rows is escaped."""
        heading = f"<b>{escape(self.title)}</b> <small>{escape(self.state)}</small>"
        body = self.rows.head(SHOWN).to_html(index=False, border=0, na_rep="NULL", escape=True)
        return f"<div>{heading}<br>{svg(self.rows, self.axes)}{body if len(self.rows.columns) else ''}</div>"

    def text(self) -> str:
        """The heading and the table; nothing that a terminal would obey."""
        rows = [[_plain(value) for value in row] for row in self.rows.head(SHOWN).itertuples(index=False)]
        names = [str(name) for name in self.rows.columns]
        return f"{self.title}: {self.state}\n{table(names, rows) if names else ''}"


class Screen(Protocol):
    """Something that shows one sight after another."""

    def show(self, sight: Sight) -> None:
        """Show it in place of the last one, or below it."""


class Cell:
    """The output of one cell, changed in place; also by a thread, when the cell has ended."""

    def __init__(self, name: str, shell: Any) -> None:
        self._name = name
        self._shown = False
        self._publish = shell.display_pub.publish

    def show(self, sight: Sight) -> None:
        """Put it in place of what the cell shows."""
        data = {"text/html": sight.html(), "text/plain": sight.text()}
        self._publish(data, {}, transient={"display_id": self._name}, update=self._shown)
        self._shown = True


class Output:
    """Standard output, for a program that is no notebook."""

    def show(self, sight: Sight) -> None:
        """Print it below the last one."""
        click.echo(sight.text())


def kernel() -> Any:
    """IPython's shell where this process is the kernel of a notebook, else None; IPython need not be installed."""
    known = sys.modules.get("IPython")
    shell = known.get_ipython() if known is not None else None
    return shell if hasattr(shell, "kernel") else None


def cell(shell: Any) -> str | None:
    """What tells the cell that runs from others, where the notebook says it."""
    said = shell.get_parent().get("metadata", {}) if shell is not None else {}
    found = said.get("cellId")
    return str(found) if found else None


def _plain(value: Any) -> object:
    if types.is_scalar(value) and pd.isna(value):
        return None
    return value.to_pydatetime() if isinstance(value, pd.Timestamp) else value
