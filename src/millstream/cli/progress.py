"""Show the progress of slow steps: one line that is overwritten on a terminal, one line per step elsewhere."""

from __future__ import annotations

import sys
from dataclasses import dataclass

import click

from millstream.cli.messages import is_quiet, print_hint


@dataclass
class _Line:
    """The progress line of the terminal, which has no line break at its end."""

    is_shown: bool = False


_line = _Line()


def overwrite_line(text: str) -> None:
    """Replace the progress line of the terminal. An empty text deletes it, and does nothing if there is none."""
    if text or _line.is_shown:
        click.echo(f"\r\x1b[2K{text}", err=True, nl=False)
    _line.is_shown = bool(text)


class ProgressReporter:
    """Prints the current step to stderr."""

    def __init__(self) -> None:
        self.live = sys.stderr.isatty()
        self.quiet = is_quiet()
        self.last = ""

    def show(self, text: str) -> None:
        """Show the current step."""
        if self.quiet:
            return
        if self.live:
            overwrite_line(text)
        # Print a rising count only on a terminal, where the line can be overwritten.
        elif text.partition(":")[0] != self.last:
            click.echo(text, err=True)
        self.last = text.partition(":")[0]

    def say(self, text: str) -> None:
        """Print a line that stays on the screen."""
        self.clear()
        print_hint(text)

    def clear(self) -> None:
        """Clear the progress line."""
        if self.live and self.last:
            overwrite_line("")
        self.last = ""
