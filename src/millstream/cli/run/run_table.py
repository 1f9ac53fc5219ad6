"""Draw the live table of a run on a terminal: one row per query, redrawn in place."""

from __future__ import annotations

import threading
import time
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from millstream.cli.run.run_output import page_message
from millstream.diagnostics.guarantee_table import format_guarantee_table as promises
from millstream.engine.events.event_messages import format_event
from millstream.engine.events.progress_listener import lag_seconds
from millstream.spec.secrets.redaction import redact

if TYPE_CHECKING:
    from pathlib import Path

    from millstream.engine.events.event_bus import Event
    from millstream.pipeline.model import Pipeline

_COLOURS = {
    "running": "green",
    "starting": "yellow",
    "retrying": "yellow",
    "waiting": "yellow",
    "failed": "bold red",
    "ended": "dim",
}
_LOGGED = {
    "plan",
    "retry",
    "waiting",
    "going_on",
    "query_failed",
    "dead_letter",
    "set_aside",
    "delivered_later",
    "adopted",
    "warning",
    "query_stopped",
    "stopping",
}


@dataclass
class _Row:
    """The current figures of one query."""

    trigger: str
    interval: float | None
    state: str = "starting"
    batch: int | None = None
    rows_in: int = 0
    rows_out: int = 0
    letters: int = 0
    broken: int = 0
    late: int = 0
    figures: dict[str, Any] = field(default_factory=dict)


class LiveTable:
    """Draws a table of the queries on stderr during the run. Output of the console sink scrolls above it."""

    def __init__(self, pipeline: Pipeline, queries: list[str], log: Path) -> None:
        self._name = pipeline.name
        self._log = log
        self._rows = {
            name: _Row(
                trigger=str(pipeline.trigger(name)),
                interval=(wait.seconds if (wait := pipeline.trigger(name).processing_time) else None),
            )
            for name in queries
        }
        self._messages: deque[str] = deque(maxlen=4)
        self._since = time.monotonic()
        self._lock = threading.Lock()
        self._live = Live(get_renderable=self._draw, console=Console(stderr=True), refresh_per_second=4)

    def __enter__(self) -> LiveTable:
        self._live.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._live.refresh()
        self._live.__exit__(*error)

    def say(self, text: str) -> None:
        """Show a progress message below the table."""
        with self._lock:
            self._messages.append(redact(text))

    def page(self, address: str | None, reason: str) -> None:
        """Print the address of the live page, or why there is none, above the table, where it stays."""
        if text := page_message(address, reason):
            self._live.console.print(Text(text))

    def show(self, event: Event) -> None:
        """Update the table with one event."""
        with self._lock:
            if event.query in self._rows:
                _take(self._rows[event.query], event)
            if event.event in _LOGGED and (text := format_event(event)):
                self._messages.append(f"{event.at[11:19]} {text}")
            if event.event == "run_started":
                self._messages.clear()
        if event.event == "run_started":
            # Printed above the redrawn table, so that it stays when the run ends. Printed without our lock, because
            # drawing takes the console's lock first and ours second.
            for line in promises(event.data["guarantees"]):
                self._live.console.print(Text(line, overflow="ellipsis", no_wrap=True))

    def _draw(self) -> Group:
        with self._lock:
            table = Table(title=None, expand=False, box=None, pad_edge=False, header_style="bold")
            for head in ("query", "state"):
                table.add_column(head, no_wrap=True)
            for head in (
                "batch",
                "in/s",
                "out/s",
                "batch time",
                "watermark",
                "state rows",
                "late",
                "broken",
                "dead letters",
            ):
                table.add_column(head, justify="right", no_wrap=True)
            for name, row in self._rows.items():
                table.add_row(name, Text(row.state, _COLOURS.get(row.state, "")), *_cells(row))
            run = int(time.monotonic() - self._since)
            heading = Text.assemble((self._name, "bold"), f"  {run // 60}:{run % 60:02d}  log {self._log}")
            return Group(
                heading, table, *(Text(line, overflow="ellipsis", no_wrap=True) for line in self._messages)
            )


def _take(row: _Row, event: Event) -> None:
    """Update a query's row with one event."""
    match event.event:
        case "query_started":
            row.state = "running"
        case "batch_committed":
            row.batch = event.data["batch"]
            row.rows_in += event.data["rows_in"]
            row.rows_out += event.data["rows_out"] or 0
            row.late += event.data["late_rows"]
            broken_counts = event.data.get("expectations", {}).values()
            row.broken += sum(rows for expectations in broken_counts for rows in expectations.values())
            row.figures = event.data
        case "dead_letter":
            row.letters += event.data["records"] or 0
        case "retry":
            row.state = "retrying"
        case "waiting":
            row.state = "waiting"
        case "going_on":
            row.state = "running"
        case "query_failed":
            row.state = "failed"
        case "query_stopped":
            row.state = "ended"


def _cells(row: _Row) -> list[str]:
    """Format the figures of a row as short texts."""
    figures = row.figures
    if not figures:
        return ["-"] * 9
    milliseconds = figures["duration_ms"].get("triggerExecution", 0)
    out = figures["rows_out"]
    rate_out = out / (milliseconds / 1000) if out is not None and milliseconds else None
    interval = f" / {row.interval:g} s" if row.interval else ""
    lag = lag_seconds(figures["watermark"])
    return [
        str(row.batch),
        _number(figures["processed_rate"]),
        _number(rate_out),
        f"{milliseconds / 1000:.1f} s{interval}",
        "-" if lag is None else f"{_span(lag)} ago",
        _number(figures["state_rows"]),
        str(row.late),
        str(row.broken),
        str(row.letters),
    ]


def _number(value: float | None) -> str:
    """Format a figure in at most five characters."""
    if value is None:
        return "-"
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if value >= size:
            return f"{value / (1e3 if unit == 'k' else size):.1f}{unit}"
    return f"{value:.0f}"


def _span(seconds: float) -> str:
    """Format a duration in its largest unit."""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if abs(seconds) >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"
