"""A recorded run served as if it went on: `python -m millstream.dashboard.replay FILE [--port N] [--speed X]`."""

from __future__ import annotations

import argparse
import sys
import threading
import time
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from millstream.dashboard import moments
from millstream.dashboard.answers import STATIC
from millstream.dashboard.feed import Feed
from millstream.dashboard.fold import begun
from millstream.dashboard.metrics import Counts
from millstream.dashboard.page import serve
from millstream.dashboard.runlog import brief, events
from millstream.diagnostics.failure import MillstreamError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from millstream.runtime.events import Event

_MOMENTS = ("watermark", "newest")


class MadeUp:
    """Answers about the outside world that need none: a few rows and messages, always of the same shape."""

    def rows(self, sink: str) -> dict[str, Any] | None:
        """Windows of five minutes with a count by category."""
        at = time.time()
        first = at - at % 300
        rows = [
            [moments.text(first - 300 * number), 400 - 7 * number, round(12.5 + number, 2), kind]
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
            "at": moments.text(at),
            "columns": [{"name": name, "type": kind} for name, kind in names],
            "rows": rows,
            "note": "",
            "time_column": "window_start",
            "value_columns": ["views", "revenue"],
        }

    def messages(self, source: str) -> dict[str, Any] | None:
        """Twenty messages, one of them not JSON and one with markup in it."""
        values = [
            '{"event_id": "e-%d", "user_id": "u0042"}',
            "{broken %d",
            '{"name": "<b onclick=alert(%d)>"}',
        ]
        at = time.time()
        return {
            "source": source,
            "at": moments.text(at),
            "messages": [
                {
                    "topic": source,
                    "partition": number % 4,
                    "offset": 12_000 - number,
                    "timestamp": moments.text(at - number / 10),
                    "key": f"u{number:04}",
                    "value": values[1 if number == 3 else 2 if number == 5 else 0] % number,
                    "cut": False,
                }
                for number in range(20)
            ],
            "note": "",
        }

    def letters(self) -> dict[str, Any]:
        """One letter."""
        one = {
            "at": moments.text(time.time()),
            "query": "funnel",
            "source": "clicks",
            "batch": 11,
            "reason": "not JSON",
            "place": "topic clicks, partition 0, offset 12004",
            "value": '{"event_id": ',
        }
        return {"latest": [one], "note": "millstream deadletter list shows all of them"}


class Absent:
    """The outside world of a run that is over: it may be another one by now."""

    def rows(self, sink: str) -> dict[str, Any] | None:
        """No rows, and why."""
        note = "the run is over; millstream show prints what the sink holds"
        return {
            "sink": sink,
            "at": None,
            "columns": [],
            "rows": [],
            "note": note,
            "time_column": None,
            "value_columns": [],
        }

    def messages(self, source: str) -> dict[str, Any] | None:
        """No messages, and why."""
        return {"source": source, "at": None, "messages": [], "note": "the run is over"}

    def letters(self) -> dict[str, Any]:
        """No letters, and where they are."""
        return {"latest": [], "note": "millstream deadletter list shows them"}


def moved(event: Event, by: float) -> Event:
    """An event so many seconds later, with the times in its figures."""
    data = dict(event.data)
    for name in _MOMENTS:
        at = moments.perhaps(data.get(name))
        if at is not None:
            data[name] = moments.text(at + by)
    return replace(event, at=moments.text(moments.seconds(event.at) + by), data=data)


def paced(recorded: Iterable[Event], speed: float) -> Iterator[Event]:
    """The events at so many times their pace, as if the first happened at the call; one after another."""
    start = by = None
    for event in recorded:
        at = moments.seconds(event.at)
        if start is None or by is None:
            start, by = at, time.time() - at
        due = start + by + (at - start) / speed
        # A replay keeps the pace that the run had.
        time.sleep(max(0.0, due - time.time()))
        yield moved(event, time.time() - at)


def opened(place: Path, name: str) -> Feed:
    """The feed of a finished run; of a long one not every batch. Raises `OSError` and `ValueError`."""
    recorded = brief(place)
    number, first = next(recorded, (0, None))
    if first is None:
        raise ValueError(f"{place} holds no event")
    feed = Feed(begun(first.data.get("run", name), first.at, live=False), counts=Counts())
    last = first
    for at, event in chain([(number, first)], recorded):
        feed.recall(event, at)
        last = event
    if feed.folded.run["ended"] is None:
        # It was killed, or its end is not in the file: its clock stands at its last word.
        feed.folded.run["ended"] = last.at
    return feed


def main(arguments: Mapping[str, Any] | None = None) -> int:
    """Serve until Ctrl-C."""
    reader = argparse.ArgumentParser(prog="python -m millstream.dashboard.replay", description=__doc__)
    reader.add_argument("file", type=Path, help="JSON lines of a run's events, or the folder of a run")
    reader.add_argument("--port", type=int, default=None)
    reader.add_argument("--speed", type=float, default=1.0, help="0: all at once, as a run that is over")
    reader.add_argument("--static", type=Path, default=STATIC, help="the folder of the built page")
    given = reader.parse_args() if arguments is None else argparse.Namespace(**arguments)
    if given.speed > 0:
        recorded = events(given.file)
        feed = Feed(begun("replay", moments.text(time.time()), live=True), counts=Counts())
        feed.start()
        threading.Thread(target=_play, args=(feed, recorded, given.speed), daemon=True).start()
    else:
        feed = opened(given.file, given.file.stem)
    try:
        page = serve(feed, MadeUp(), port=given.port, static=given.static)
    except MillstreamError as refused:
        sys.stderr.write(f"{refused}\n")
        return refused.exit_code
    sys.stderr.write(f"{page.address}\n")
    sys.stderr.flush()
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        page.close()
    return 0


def _play(feed: Feed, recorded: Iterable[tuple[int, Event]], speed: float) -> None:
    for event in paced((event for _, event in recorded), speed):
        if event.event == "described":
            feed.folded.run["id"] = event.data.get("run", "replay")
        feed.take(event)


if __name__ == "__main__":
    sys.exit(main())
