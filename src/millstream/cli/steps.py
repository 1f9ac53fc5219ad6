"""Progress of what takes seconds: one line that changes on a terminal, one line a step elsewhere."""

from __future__ import annotations

import sys

import click


class Steps:
    """Tells on stderr what is being done."""

    def __init__(self) -> None:
        self.live = sys.stderr.isatty()
        self.last = ""

    def tell(self, text: str) -> None:
        """A step that is under way."""
        if self.live:
            click.echo(f"\r\x1b[2K{text}", err=True, nl=False)
        # A count that goes up is worth a line only where the line can change.
        elif text.partition(":")[0] != self.last:
            click.echo(text, err=True)
        self.last = text.partition(":")[0]

    def say(self, text: str) -> None:
        """Something to keep on the screen."""
        self.done()
        click.echo(text, err=True)

    def done(self) -> None:
        """Clear the line that changes."""
        if self.live and self.last:
            click.echo("\r\x1b[2K", err=True, nl=False)
        self.last = ""
