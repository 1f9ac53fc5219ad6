"""Replay a recorded run on the live page.

python -m millstream.dashboard.replay_server FILE [--port N] [--speed X]
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from millstream.dashboard.export.prometheus import EventCounters
from millstream.dashboard.http.app import serve
from millstream.dashboard.http.event_stream import EventStream
from millstream.dashboard.http.routes import STATIC
from millstream.dashboard.run_log import read_events, read_thinned_events
from millstream.dashboard.state import timestamps
from millstream.dashboard.state.run_state import new_run_state
from millstream.diagnostics.failure import MillstreamError
from millstream.engine.background_threads import BackgroundThread

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from millstream.engine.events.event_bus import Event

_MOMENTS = ("watermark", "newest")


class GeneratedPreviews:
    """Previews with generated rows and messages, always of the same shape, without external systems."""

    def rows(self, sink: str) -> dict[str, Any] | None:
        """Return windows of five minutes with a count by category."""
        at = time.time()
        first = at - at % 300
        rows = [
            [
                timestamps.format_timestamp(first - 300 * number),
                400 - 7 * number,
                round(12.5 + number, 2),
                kind,
            ]
            for number in range(24)
            for kind in ("shoes", "books")
        ]
        names = (
            ("window_start", "timestamp"),
            ("views", "bigint"),
            ("revenue", "double"),
            ("category", "string"),
        )
        return {
            "sink": sink,
            "at": timestamps.format_timestamp(at),
            "columns": [{"name": name, "type": kind} for name, kind in names],
            "rows": rows,
            "truncated": False,
            "note": "",
            "time_column": "window_start",
            "value_columns": ["views", "revenue"],
        }

    def messages(self, source: str) -> dict[str, Any] | None:
        """Return twenty messages, one of them not JSON and one with markup."""
        values = [
            '{"event_id": "e-%d", "user_id": "u0042"}',
            "{broken %d",
            '{"name": "<b onclick=alert(%d)>"}',
        ]
        at = time.time()
        return {
            "source": source,
            "at": timestamps.format_timestamp(at),
            "messages": [
                {
                    "topic": source,
                    "partition": number % 4,
                    "offset": 12_000 - number,
                    "timestamp": timestamps.format_timestamp(at - number / 10),
                    "key": f"u{number:04}",
                    "value": values[1 if number == 3 else 2 if number == 5 else 0] % number,
                    "cut": False,
                }
                for number in range(20)
            ],
            "note": "",
        }

    def letters(self) -> dict[str, Any]:
        """Return one dead letter."""
        letter = {
            "at": timestamps.format_timestamp(time.time()),
            "query": "funnel",
            "source": "clicks",
            "batch": 11,
            "reason": "not JSON",
            "place": "topic clicks, partition 0, offset 12004",
            "value": '{"event_id": ',
        }
        return {"latest": [letter], "stored": 1, "note": ""}

    def state(self, query: str, _keys: int | None, /) -> dict[str, Any] | None:
        """Return the windows of an aggregation."""
        store = {
            "operator": 0,
            "state": "aggregation",
            "batch": 11,
            "partitions": [12, 9, 14, 11],
            "growth": 4,
            "batches": 2,
            "columns": ["window", "count(1)", "removed after", "partition"],
            "rows": [
                ["12:00:00 - 12:15:00", 42 + number, "2026-03-01T12:15:00Z", number] for number in range(4)
            ],
        }
        return {"query": query, "stores": [store], "note": ""}


class NoPreviews:
    """Previews of a past run: none, because external systems may have changed since."""

    def rows(self, sink: str) -> dict[str, Any] | None:
        """Return no rows, and the reason."""
        note = "the run is over; use 'millstream show' to print the rows of the sink"
        return {
            "sink": sink,
            "at": None,
            "columns": [],
            "rows": [],
            "truncated": False,
            "note": note,
            "time_column": None,
            "value_columns": [],
        }

    def messages(self, source: str) -> dict[str, Any] | None:
        """Return no messages, and the reason."""
        return {"source": source, "at": None, "messages": [], "note": "the run is over"}

    def letters(self) -> dict[str, Any]:
        """Return no dead letters, and the command that lists them."""
        return {"latest": [], "stored": None, "note": "millstream deadletter list shows them"}

    def state(self, query: str, _keys: int | None, /) -> dict[str, Any] | None:
        """Return no state, and the command that shows it."""
        return {"query": query, "stores": [], "note": f"millstream state show {query} shows it"}


def shift_event(event: Event, by: float) -> Event:
    """Return the event moved by this many seconds, including the times in its data."""
    data = dict(event.data)
    for name in _MOMENTS:
        at = timestamps.parse_or_none(data.get(name))
        if at is not None:
            data[name] = timestamps.format_timestamp(at + by)
    return replace(event, at=timestamps.format_timestamp(timestamps.parse(event.at) + by), data=data)


def replay_at_speed(recorded: Iterable[Event], speed: float) -> Iterator[Event]:
    """Yield the events at `speed` times their original pace, as if the first happened now."""
    start = shift = None
    for event in recorded:
        at = timestamps.parse(event.at)
        if start is None or shift is None:
            start, shift = at, time.time() - at
        due = start + shift + (at - start) / speed
        # Sleeps, because a replay keeps the pace of the run.
        time.sleep(max(0.0, due - time.time()))
        yield shift_event(event, time.time() - at)


def load_past_run(place: Path, name: str) -> EventStream:
    """Load a past run; a long one without some of its batches. Raises `OSError` and `ValueError`."""
    recorded = read_thinned_events(place)
    number, first = next(recorded, (0, None))
    if first is None:
        raise ValueError(f"{place} contains no events")
    feed = EventStream(
        new_run_state(first.data.get("run", name), first.at, live=False), counts=EventCounters()
    )
    last = first
    for at, event in chain([(number, first)], recorded):
        feed.replay_event(event, at)
        last = event
    if feed.folded.run["ended"] is None:
        # The run was killed, or its end is not in the file, so its last event counts as the end.
        feed.folded.run["ended"] = last.at
    return feed


def main(arguments: Mapping[str, Any] | None = None) -> int:
    """Serve until Ctrl-C."""
    parser = argparse.ArgumentParser(prog="python -m millstream.dashboard.replay_server", description=__doc__)
    parser.add_argument("file", type=Path, help="JSON lines of a run's events, or the folder of a run")
    parser.add_argument("--port", type=int, default=None)
    parser.add_argument("--speed", type=float, default=1.0, help="speed factor; 0 shows the run as finished")
    parser.add_argument("--static", type=Path, default=STATIC, help="the folder of the built page")
    options = parser.parse_args() if arguments is None else argparse.Namespace(**arguments)
    if options.speed > 0:
        recorded = read_events(options.file)
        feed = EventStream(
            new_run_state("replay", timestamps.format_timestamp(time.time()), live=True),
            counts=EventCounters(),
        )
        feed.start()
        BackgroundThread("replay", partial(_play, feed, recorded, options.speed), restarts=0).start()
    else:
        feed = load_past_run(options.file, options.file.stem)
    try:
        page = serve(feed, GeneratedPreviews(), port=options.port, static=options.static)
    except MillstreamError as failure:
        sys.stderr.write(f"{failure}\n")
        return failure.exit_code
    sys.stderr.write(f"{page.address}\n")
    sys.stderr.flush()
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        page.close()
    return 0


def _play(feed: EventStream, recorded: Iterable[tuple[int, Event]], speed: float) -> None:
    for event in replay_at_speed((event for _, event in recorded), speed):
        if event.event == "described":
            feed.folded.run["id"] = event.data.get("run", "replay")
        feed.take(event)


if __name__ == "__main__":
    sys.exit(main())
