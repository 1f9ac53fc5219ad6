"""How a run is told where there is no terminal: JSON lines for programs, plain lines for logs."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, TextIO

import click

from millstream.runtime.sentences import sentence

if TYPE_CHECKING:
    from pathlib import Path

    from millstream.runtime.events import Event

# `batch_committed` has what `batch_written` has and more; an idle query would repeat itself every ten seconds.
_QUIET = {"batch_written", "idle"}


class JsonLines:
    """One JSON object a line on stdout for each event, and nothing else there.

    What else is printed meanwhile, by a console sink or a function of the pipeline, goes to stderr.
    """

    def __init__(self) -> None:
        self._out: TextIO = sys.stdout
        self._others = redirect_stdout(sys.stderr)

    def __enter__(self) -> JsonLines:
        self._out = sys.stdout
        self._others.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        """What is printed from now on is seen again."""
        self._others.__exit__(None, None, None)

    def say(self, text: str) -> None:
        """A word on what is being done, for a person: on stderr."""
        click.echo(f"millstream: {text}", err=True)

    def page(self, address: str | None, refused: str) -> None:
        """Where the live page is, or why there is none."""
        if text := served(address, refused):
            self.say(text)

    def show(self, event: Event) -> None:
        """Print one event."""
        if event.event not in _QUIET:
            click.echo(event.to_json(), file=self._out)


class PlainLines:
    """One line on stderr for each event that a person would want in a log."""

    def __init__(self, log: Path) -> None:
        self._log = log

    def __enter__(self) -> PlainLines:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing to let go of."""

    def say(self, text: str) -> None:
        """A word on what is being done."""
        click.echo(f"millstream: {text}", err=True)

    def page(self, address: str | None, refused: str) -> None:
        """Where the live page is, or why there is none."""
        if text := served(address, refused):
            self.say(text)

    def show(self, event: Event) -> None:
        """Print one event as a sentence."""
        text = sentence(event)
        if text:
            click.echo(f"{event.at} {text}", err=True)


def served(address: str | None, refused: str) -> str:
    """Where the live page is, or why there is none; nothing where none was wanted."""
    if address is None:
        return f"there is no live page: {refused}" if refused else ""
    warned = "" if "?token=" not in address else "; the token in it is a secret, and HTTP is not encrypted"
    return f"the live page is {address}{warned}"
