"""Looks at what lies outside a run while it goes on: rows of its sinks, messages of its sources, dead letters."""

from __future__ import annotations

import json
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as TooLong
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

from millstream.connectors.letters import read
from millstream.dashboard import moments
from millstream.dashboard.described import sink_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from millstream.connectors.letters import Letter
    from millstream.connectors.source import Recent
    from millstream.dashboard.hiding import Hiding
    from millstream.pipeline.model import Pipeline

ROWS, MESSAGES, LETTERS = 500, 20, 50
# A look at one thing serves everybody for so many seconds: a page that is open does not load the database.
FRESH = 3.0
# A server that does not answer holds nobody for longer; the look goes on and serves the next one who asks.
PATIENCE = 5.0
# So much of a message or value is shown, in characters.
SHOWN = 2_000
DELETED = "millstream deadletter list shows all of them"


@dataclass
class Looking:
    """Looks for one pipeline; one at a time, each kept for some seconds."""

    pipeline: Pipeline
    hiding: Hiding
    _pool: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(2, "millstream-look"))
    _kept: dict[str, tuple[float, Future[Any]]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def rows(self, sink: str) -> dict[str, Any] | None:
        """The latest rows of a sink, with the columns that a plot over time would take."""
        found = sink_of(self.pipeline, sink)
        if found is None:
            return None
        told, note = self._ask(f"rows {sink}", lambda: found.rows(ROWS))
        if not note and told is None:
            note = f"{found.describe()} cannot be read back"
        names, rows = told or ([], [])
        shape = table(names, rows)
        if not note and not rows:
            note = f"{found.describe()} holds no rows yet"
        return self.hiding.deep({"sink": sink, "at": moments.text(time.time()), **shape, "note": note})  # type: ignore[no-any-return]

    def messages(self, source: str) -> dict[str, Any] | None:
        """Recent messages of a source."""
        entry = self.pipeline.sources.get(source)
        if entry is None:
            return None
        told, note = self._ask(f"messages {source}", lambda: entry.source.recent(MESSAGES))
        if not note and told is None:
            note = f"{entry.source.describe()} has no messages that can be looked at"
        elif not note and not told:
            note = f"{entry.source.describe()} holds no message yet"
        found = [message(one) for one in told or ()]
        whole = {"source": source, "at": moments.text(time.time()), "messages": found, "note": note}
        return self.hiding.deep(whole)  # type: ignore[no-any-return]

    def letters(self) -> dict[str, Any]:
        """The latest dead letters that are kept, of this run or one before it."""
        told, note = self._ask("letters", lambda: read(self.pipeline.letters))
        latest = sorted(told or (), key=lambda one: one.at, reverse=True)[:LETTERS]
        return self.hiding.deep({"latest": [letter(one) for one in latest], "note": note or DELETED})  # type: ignore[no-any-return]

    def close(self) -> None:
        """Begin no further look."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _ask(self, what: str, look: Callable[[], Any]) -> tuple[Any, str]:
        """What a look gives, and a note where it gives nothing."""
        with self._lock:
            at, kept = self._kept.get(what, (0.0, None))
            # One that is still under way is waited for, however old: a second would wait behind it.
            if kept is None or (kept.done() and time.monotonic() - at > FRESH):
                kept = self._pool.submit(look)
                self._kept[what] = (time.monotonic(), kept)
        try:
            return kept.result(timeout=PATIENCE), ""
        except TooLong:
            return None, f"there was no answer within {PATIENCE:g} s; the next look waits for it"
        except Exception as wrong:  # noqa: BLE001 - a table may not exist yet, a server be away: that is told, not raised
            return None, " ".join(str(getattr(wrong, "what", wrong)).split())[:400]


def table(names: Sequence[str], rows: Sequence[Sequence[object]]) -> dict[str, Any]:
    """Columns with types, rows of plain values, and which columns are a time and figures for a plot."""
    kinds = [kind_of([row[index] for row in rows]) for index in range(len(names))]
    times = [name for name, kind in zip(names, kinds, strict=True) if kind in ("timestamp", "date")]
    clock = next((name for name in times if "start" in name or "window" in name), times[0] if times else None)
    plain = [[cell(value) for value in row] for row in rows]
    if clock is not None:
        place = list(names).index(clock)
        plain.sort(key=lambda row: str(row[place] or ""), reverse=True)
    return {
        "columns": [{"name": name, "type": kind} for name, kind in zip(names, kinds, strict=True)],
        "rows": plain,
        "time_column": clock,
        "value_columns": [
            name for name, kind in zip(names, kinds, strict=True) if kind in ("bigint", "double")
        ],
    }


def kind_of(values: Sequence[object]) -> str:
    """The type of a column by its first value that is not null, in Spark's words; `string` where all are."""
    first = next((value for value in values if value is not None), None)
    match first:
        case bool():
            return "boolean"
        case int():
            return "bigint"
        case datetime():
            return "timestamp"
        case date():
            return "date"
        case str() | None:
            return "string"
    return "double" if isinstance(first, float) or type(first).__name__ == "Decimal" else "json"


def cell(value: object) -> object:
    """A value as JSON has it: times in UTC, bytes as text, figures as figures; others as JSON in a text."""
    match value:
        case None | bool() | int():
            return value
        case float():
            # JSON knows neither NaN nor infinities.
            return value if value == value and abs(value) != float("inf") else str(value)
        case str():
            return cut(value)
        case datetime():
            there = value if value.tzinfo else value.replace(tzinfo=UTC)
            return moments.text(there.timestamp())
        case bytes():
            return cut(value.decode(errors="replace"))
    if type(value).__name__ == "Decimal":
        return float(str(value))
    return cut(str(value) if isinstance(value, date) else json.dumps(value, default=str))


def cut(text: str) -> str:
    """The beginning of a long text."""
    return text if len(text) <= SHOWN else text[:SHOWN] + "…"


def message(one: Recent) -> dict[str, Any]:
    """A message as the page reads it."""
    value = None if one.value is None else one.value.decode(errors="replace")
    return {
        "topic": one.topic,
        "partition": one.partition,
        "offset": one.offset,
        "timestamp": moments.text(one.timestamp.timestamp()),
        "key": None if one.key is None else cut(one.key.decode(errors="replace")),
        "value": None if value is None else value[:SHOWN],
        "cut": value is not None and len(value) > SHOWN,
    }


def letter(one: Letter) -> dict[str, Any]:
    """A dead letter as the page reads it."""
    place = one.file or ""
    if one.topic is not None:
        place = f"topic {one.topic}, partition {one.partition}, offset {one.offset}"
    return {
        "at": cell(one.at),
        "query": one.query,
        "source": one.source,
        "batch": one.batch_id,
        "reason": one.reason,
        "place": place,
        "value": None if one.value is None else cut(one.value.decode(errors="replace")),
    }
