"""Draw a run on a terminal: its start step by step, then a table with one row per query, redrawn in place."""

from __future__ import annotations

import io
import os
import sys
import threading
import time
from collections import deque
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from datetime import datetime
from typing import TYPE_CHECKING

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from millstream.cli.run.run_columns import QueryFigures, build_table
from millstream.cli.run.run_output import page_message
from millstream.diagnostics.guarantee_table import format_guarantee_table
from millstream.diagnostics.snippet import escape_lines
from millstream.engine.events.event_messages import format_event
from millstream.spec.secrets.redaction import redact

if TYPE_CHECKING:
    from pathlib import Path

    from millstream.engine.events.event_bus import Event
    from millstream.pipeline.model import Pipeline

_LOGGED = {
    "plan",
    "retry",
    "waiting",
    "going_on",
    "query_failed",
    "dead_letter",
    "set_aside",
    "still_spooled",
    "delivered_later",
    "adopted",
    "warning",
    "query_stopped",
    "stopping",
}


class LiveTable:
    """Draws the run on stderr. What the console sink prints scrolls above it."""

    def __init__(
        self, pipeline: Pipeline, queries: list[str], log: Path, console: Console | None = None
    ) -> None:
        self._name = pipeline.name
        self._log = _relative(log)
        self._rows = {name: QueryFigures(pipeline.trigger(name).interval_seconds) for name in queries}
        self._steps: list[str] = []
        self._spinner = Spinner("dots", style="yellow")
        self._is_started = False
        self._messages: deque[str] = deque(maxlen=4)
        self._since = self._step_since = time.monotonic()
        self._lock = threading.Lock()
        self._held = ExitStack()
        self._console = console or Console(file=sys.stderr)
        self._live = Live(
            get_renderable=self._draw,
            console=self._console,
            refresh_per_second=4,
            redirect_stdout=False,
            redirect_stderr=False,
        )

    def __enter__(self) -> LiveTable:
        self._held.enter_context(self._live)
        # Other output to this terminal must go through the console, or it is written into the table.
        if sys.stderr.isatty():
            self._held.enter_context(redirect_stderr(_OutputAbove(self._console)))
        if sys.stdout.isatty():
            self._held.enter_context(redirect_stdout(_OutputAbove(self._console)))
        return self

    def __exit__(self, *_: object) -> None:
        self._live.refresh()
        self._held.close()

    def step(self, text: str) -> None:
        """Show the step of the start that begins now. The one before is done."""
        with self._lock:
            self._steps.append(text)
            self._step_since = time.monotonic()

    def say(self, text: str) -> None:
        """Show a message below the table."""
        with self._lock:
            self._messages.append(escape_lines(redact(text)))

    def page(self, address: str | None, reason: str) -> None:
        """Print the address of the live page, or why there is none, above the table, where it stays."""
        if text := page_message(address, reason):
            self._console.print(Text(text), soft_wrap=True)

    def show(self, event: Event) -> None:
        """Update the table with one event."""
        if event.event == "run_started":
            # Printed before the table is drawn for the first time, and without our lock, because drawing takes the
            # console's lock first and ours second.
            for line in format_guarantee_table(event.data["guarantees"]):
                self._console.print(Text(line), overflow="ellipsis", no_wrap=True)
        with self._lock:
            if event.query in self._rows:
                self._rows[event.query].update(event)
            if event.event in _LOGGED and (text := format_event(event)):
                self._messages.append(f"{_local_time(event.at)} {escape_lines(text)}")
            if event.event == "run_started":
                self._messages.clear()
                self._is_started = True

    def _draw(self) -> Group:
        width = self._console.width
        with self._lock:
            run = int(time.monotonic() - self._since)
            heading = Text.assemble((self._name, "bold"), f"  {run // 60}:{run % 60:02d}  log {self._log}")
            body = [build_table(self._rows, width)] if self._is_started else self._draw_steps()
            lines = (heading, *(Text(message) for message in self._messages))
            for line in lines:
                line.no_wrap, line.overflow = True, "ellipsis"
            return Group(lines[0], *body, *lines[1:])

    def _draw_steps(self) -> list[RenderableType]:
        """Draw the finished steps with ticks, and the current one with a spinner and its seconds."""
        if not self._steps:
            return []
        done = [Text.assemble(("✓ ", "green"), step) for step in self._steps[:-1]]
        seconds = int(time.monotonic() - self._step_since)
        self._spinner.update(text=Text(f"{self._steps[-1]}  {seconds} s", overflow="ellipsis", no_wrap=True))
        return [*done, self._spinner]


class _OutputAbove(io.TextIOBase):
    """Writes whole lines through a console, which moves its live region down."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._line = ""

    def write(self, text: str) -> int:
        """Print the lines that are complete, and keep the rest."""
        *lines, self._line = (self._line + text).split("\n")
        if lines:
            self._console.print(Text("\n".join(lines)), soft_wrap=True)
        return len(text)

    def isatty(self) -> bool:
        """Return True: the output comes to a terminal."""
        return True

    def close(self) -> None:
        """Print the rest, if there is any."""
        if self._line:
            self.write("\n")
        super().close()


def _relative(path: Path) -> str:
    """Return the path from this folder, if that is shorter."""
    return min(str(path), os.path.relpath(path), key=len)


def _local_time(at: str) -> str:
    """Return the local time of day of an ISO-8601 time in UTC."""
    return f"{datetime.fromisoformat(at.replace('Z', '+00:00')).astimezone():%H:%M:%S}"
