"""Display a run without a terminal: as JSON lines for programs, or plain lines for logs."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, TextIO
from urllib.parse import urlsplit

import click

from millstream.cli.messages import is_quiet, print_hint
from millstream.dashboard.http.auth import is_local
from millstream.diagnostics.snippet import escape_lines
from millstream.engine.events.event_messages import format_event
from millstream.spec.secrets.redaction import redact

if TYPE_CHECKING:
    from pathlib import Path

    from millstream.engine.events.event_bus import Event

# `batch_committed` has what matters of a batch's start and its parts; an idle query repeats `idle` every ten seconds.
_QUIET = {"phase", "batch_started", "batch_written", "idle"}
# `-q` prints the other events: failures, dead letters, outages.
_ROUTINE = {"run_started", "query_started", "batch_committed", "query_stopped", "stopping", "run_stopped"}


class StderrMessages:
    """Prints the messages that are not events to stderr."""

    def say(self, text: str) -> None:
        """Print a progress message to stderr."""
        click.echo(escape_lines(redact(f"millstream: {text}")), err=True)

    def step(self, text: str) -> None:
        """Print the step of the start that begins now."""
        print_hint(f"millstream: {text}")

    def page(self, address: str | None, reason: str) -> None:
        """Print the address of the live page, or why there is none."""
        if text := page_message(address, reason):
            self.say(text)


class JsonLines(StderrMessages):
    """Prints each event as one JSON object per line on stdout.

    Other output, of a console sink or a function of the pipeline, goes to stderr.
    """

    def __init__(self) -> None:
        self._out: TextIO = sys.stdout
        self._redirect = redirect_stdout(sys.stderr)

    def __enter__(self) -> JsonLines:
        self._out = sys.stdout
        self._redirect.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        """Send other output to stdout again."""
        self._redirect.__exit__(None, None, None)

    def show(self, event: Event) -> None:
        """Print one event."""
        if event.event not in _QUIET:
            click.echo(event.to_json(), file=self._out)


class PlainLines(StderrMessages):
    """Prints one line to stderr for each event that matters in a log."""

    def __init__(self, log: Path) -> None:
        self._log = log

    def __enter__(self) -> PlainLines:
        return self

    def __exit__(self, *_: object) -> None:
        """Do nothing: there is nothing to release."""

    def show(self, event: Event) -> None:
        """Print one event as a sentence."""
        text = format_event(event)
        if text and (not is_quiet() or event.event not in _ROUTINE):
            # An error may contain a line of a record, which must not look like that of another event.
            first, *others = escape_lines(text).split("\n")
            lines = (line if line.startswith("  ") else f"  {line}" for line in others)
            click.echo("\n".join([f"{event.at} {first}", *lines]), err=True)


def page_message(address: str | None, reason: str) -> str:
    """Return a sentence on where the live page is or why there is none; empty if it was turned off."""
    if address is None:
        return f"the live page is not available: {reason}" if reason else ""
    is_loopback = is_local(urlsplit(address).hostname or "")
    warning = "" if is_loopback else "; the token in it is a secret, and HTTP is not encrypted"
    return f"the live page is {address}{warning}"
