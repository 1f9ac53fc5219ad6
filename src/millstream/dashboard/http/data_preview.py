"""Read rows of sinks, messages of sources, dead letters and state for the live page during a run."""

from __future__ import annotations

import json
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as TooLong
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any, TypeAlias

from millstream.connectors.api.dead_letters import count_records
from millstream.dashboard.state import timestamps
from millstream.dashboard.state.pipeline_info import find_sink
from millstream.spec.secrets.redaction import redact, redact_deep

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from millstream.connectors.api.dead_letters import DeadLetter
    from millstream.connectors.api.values.recent_message import RecentMessage
    from millstream.pipeline.model import Pipeline

ROWS, MESSAGES, LETTERS = 500, 20, 50
# A result is cached for this many seconds, so that open pages put no load on the database.
FRESH = 3.0
# As long for the number of dead letters, which takes a look at all of them.
COUNTED = 30.0
# As long for the state of a query, which takes a Spark job for each of its stores; and the most keys to read so.
STATE_FRESH, MOST_KEYS, KEYS = 30.0, 200_000, 20
# Seconds to wait for a slow server. The read continues, and its result serves the next request.
PATIENCE = 5.0
# Number of characters shown of a message or value.
SHOWN = 2_000
# JavaScript rounds integers above this.
EXACT = 2**53 - 1


StateSampler: TypeAlias = "Callable[[Pipeline, str, int], list[dict[str, Any]]]"
"""Returns the stores of a query's state, with so many keys of each: `state_sample.sample_query`."""


@dataclass
class DataPreviews:
    """Reads previews for one pipeline, with one cached read per sink or source at a time."""

    pipeline: Pipeline
    sample_state: StateSampler
    _pool: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(2, "millstream-look"))
    _cache: dict[str, tuple[float, Future[Any]]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def rows(self, sink: str) -> dict[str, Any] | None:
        """Return the latest rows of a sink, and the columns for a plot over time.

        `truncated` is whether the sink may have more rows than these.
        """
        target = find_sink(self.pipeline, sink)
        if target is None:
            return None
        result, note = self._ask(f"rows {sink}", lambda: target.rows(ROWS))
        if not note and result is None:
            note = self._shorten(f"{target.describe()} cannot be read back")
        names, rows = result or ([], [])
        shape = table_json(names, rows)
        if not note and not rows:
            note = self._shorten(f"{target.describe()} has no rows yet")
        response = {
            "sink": sink,
            "at": timestamps.format_timestamp(time.time()),
            **shape,
            "truncated": len(rows) >= ROWS,
            "note": note,
        }
        return redact_deep(response)  # type: ignore[no-any-return]

    def messages(self, source: str) -> dict[str, Any] | None:
        """Return recent messages of a source."""
        entry = self.pipeline.sources.get(source)
        if entry is None:
            return None
        recent, note = self._ask(f"messages {source}", lambda: entry.source.recent(MESSAGES))
        if not note and recent is None:
            note = self._shorten(f"{entry.source.describe()} cannot show recent messages")
        elif not note and not recent:
            note = f"{entry.source.describe()} has no messages yet"
        messages = [message_json(item) for item in recent or ()]
        response = {
            "source": source,
            "at": timestamps.format_timestamp(time.time()),
            "messages": messages,
            "note": note,
        }
        return redact_deep(response)  # type: ignore[no-any-return]

    def letters(self) -> dict[str, Any]:
        """Return the latest dead letters in the store, of this run and earlier ones, and how many records it has.

        A record that two queries rejected is one record there, as `millstream deadletter list` counts.
        """
        letters, note = self._ask("letters", lambda: self.pipeline.letters.latest(LETTERS))
        stored, _ = self._ask("number of letters", self._count_letters, fresh=COUNTED)
        latest = [dead_letter_json(item) for item in letters or ()]
        return redact_deep({"latest": latest, "stored": stored, "note": note})  # type: ignore[no-any-return]

    def _count_letters(self) -> int:
        return sum(count_records(self.pipeline.letters.counts()).values())

    def state(self, query: str, keys: int | None) -> dict[str, Any] | None:
        """Return the stores of a query's state with some keys, as of the newest batch; `keys` is its size if known.

        A large state is not read: the running queries share this process's Spark.
        """
        if query not in self.pipeline.queries:
            return None
        stores: list[dict[str, Any]] | None = None
        if keys is not None and keys > MOST_KEYS:
            note = f"{keys:,} keys are too many to read during a run; use millstream state show {query}"
        else:
            stores, note = self._ask(f"state {query}", lambda: self._sample_state(query), fresh=STATE_FRESH)
        return redact_deep({"query": query, "stores": stores or [], "note": note})  # type: ignore[no-any-return]

    def _sample_state(self, query: str) -> list[dict[str, Any]]:
        samples = self.sample_state(self.pipeline, query, KEYS)
        for sample in samples:
            sample["rows"] = [[to_json_value(value) for value in row] for row in sample["rows"]]
        return samples

    def close(self) -> None:
        """Start no further read."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _ask(self, key: str, read: Callable[[], Any], *, fresh: float = FRESH) -> tuple[Any, str]:
        """Return the result of a read, or None and a note with the reason."""
        with self._lock:
            started, future = self._cache.get(key, (0.0, None))
            # Reuse a read in progress, however old, because a second one would only wait behind it.
            if future is None or (future.done() and time.monotonic() - started > fresh):
                future = self._pool.submit(read)
                self._cache[key] = (time.monotonic(), future)
        try:
            return future.result(timeout=PATIENCE), ""
        except TooLong:
            return None, f"no response within {PATIENCE:g} s; the next request waits for it"
        except Exception as error:  # noqa: BLE001 - a table may not exist yet or a server be down: shown as a note
            return None, " ".join(self._shorten(redact(str(getattr(error, "what", error)))).split())[:400]

    def _shorten(self, text: str) -> str:
        """Return a text with the paths of the project relative to its folder, as the graph has them."""
        return text.replace(f"{self.pipeline.folder}/", "")


def table_json(names: Sequence[str], rows: Sequence[Sequence[object]]) -> dict[str, Any]:
    """Return columns with types, rows of plain values, and the time and value columns of a plot."""
    kinds = [column_type([row[index] for row in rows]) for index in range(len(names))]
    times = [name for name, kind in zip(names, kinds, strict=True) if kind in ("timestamp", "date")]
    time_column = next(
        (name for name in times if "start" in name or "window" in name), times[0] if times else None
    )
    plain = [[to_json_value(value) for value in row] for row in rows]
    if time_column is not None:
        place = list(names).index(time_column)
        plain.sort(key=lambda row: str(row[place] or ""), reverse=True)
    return {
        "columns": [{"name": name, "type": kind} for name, kind in zip(names, kinds, strict=True)],
        "rows": plain,
        "time_column": time_column,
        "value_columns": [
            name for name, kind in zip(names, kinds, strict=True) if kind in ("bigint", "double")
        ],
    }


def column_type(values: Sequence[object]) -> str:
    """Return a column's type from its first value that is not null, by Spark's names; `string` if all are null."""
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


def to_json_value(value: object) -> object:
    """Convert a value to JSON: times in UTC, bytes as text, numbers as numbers, others as a JSON text.

    Numbers that a browser would round are text: large integers and decimals.
    """
    match value:
        case None | bool():
            return value
        case int():
            return value if abs(value) <= EXACT else str(value)
        case float():
            # JSON has neither NaN nor infinities.
            return value if value == value and abs(value) != float("inf") else str(value)
        case str():
            return truncate(value)
        case datetime():
            aware = value if value.tzinfo else value.replace(tzinfo=UTC)
            return timestamps.format_timestamp(aware.timestamp())
        case bytes():
            return truncate(value.decode(errors="replace"))
    if type(value).__name__ == "Decimal":
        return truncate(f"{value:f}")
    return truncate(str(value) if isinstance(value, date) else json.dumps(value, default=str))


def truncate(text: str) -> str:
    """Truncate a long text."""
    return text if len(text) <= SHOWN else text[:SHOWN] + "…"


def message_json(recent: RecentMessage) -> dict[str, Any]:
    """Convert a message to the page's JSON."""
    value = None if recent.value is None else recent.value.decode(errors="replace")
    return {
        "topic": recent.topic,
        "partition": recent.partition,
        "offset": recent.offset,
        "timestamp": timestamps.format_timestamp(recent.timestamp.timestamp()),
        "key": None if recent.key is None else truncate(recent.key.decode(errors="replace")),
        "value": None if value is None else value[:SHOWN],
        "cut": value is not None and len(value) > SHOWN,
    }


def dead_letter_json(dead_letter: DeadLetter) -> dict[str, Any]:
    """Convert a dead letter to the page's JSON."""
    place = dead_letter.file or ""
    if dead_letter.topic is not None:
        place = f"topic {dead_letter.topic}, partition {dead_letter.partition}, offset {dead_letter.offset}"
    return {
        "at": to_json_value(dead_letter.at),
        "query": dead_letter.query,
        "source": dead_letter.source,
        "batch": dead_letter.batch_id,
        "reason": dead_letter.reason,
        "place": place,
        "show": None
        if dead_letter.topic is None
        else f"{dead_letter.topic}/{dead_letter.partition}@{dead_letter.offset}",
        "value": None if dead_letter.value is None else truncate(readable_text(dead_letter.value)),
    }


def readable_text(value: bytes) -> str:
    """Return bytes as text, or in hexadecimal if they are no text: `ff fe e7`."""
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return f"hex {value[:SHOWN].hex(' ')}"
    return text if text.isprintable() or "\0" not in text else f"hex {value[:SHOWN].hex(' ')}"
