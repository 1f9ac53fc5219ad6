"""Takes the events of a run without slowing it: a bounded queue, and a thread that folds and keeps them."""

from __future__ import annotations

import json
import logging
import queue
import threading
import time
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from millstream.dashboard import moments
from millstream.dashboard.hiding import Hiding
from millstream.runtime.events import Event

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from millstream.dashboard import shapes
    from millstream.dashboard.engine import Engine
    from millstream.dashboard.fold import Folded
    from millstream.dashboard.metrics import Counts
    from millstream.dashboard.outward import Outward
    from millstream.dashboard.runlog import RunLog

_log = logging.getLogger(__name__)

# At a thousand events a second, which is ten times what is likely, half a minute of a machine that stands still.
WAITING = 30_000
# Entries that a browser which was away can still get; at ten batches a second, a quarter of an hour.
REPLAYED = 8_000
# Seconds for which a state that was made is good enough, for whoever asks.
FRESH = 0.5
# A state is sent so often though nothing happened: ages grow by themselves.
BEAT = 2.0


@dataclass(frozen=True)
class Sent:
    """One entry as it is sent: its place in the stream, its id, its data as JSON."""

    place: int
    id: str
    data: str


class Feed:
    """The state of a run for any number of readers. `take` may be called from any thread and returns at once."""

    def __init__(
        self,
        folded: Folded,
        *,
        counts: Counts,
        log: RunLog | None = None,
        hiding: Hiding | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.folded = folded
        self.counts = counts
        self.clock = clock
        self.dropped = 0
        """Events that were lost because the queue was full."""
        self.runs: list[dict[str, Any]] = []
        """Runs of the same pipeline that the history reaches back into: `id`, `from`, `to` in seconds."""
        self.outward: list[Outward] = []
        """Who else hears of each event, its secrets hidden."""
        self.engine: Engine | None = None
        """Spark's own metrics, while it is up."""
        self.ended_by: int | None = None
        """The exit code of a run that was ended before it could tell so itself."""
        self.on_alerts: Callable[[list[shapes.Alert]], None] | None = None
        self._log = log
        if log is not None:
            log.heading = self._totals
        self._hiding = hiding or Hiding()
        self._number = 0
        self._place = 0
        self._ring: deque[Sent] = deque(maxlen=REPLAYED)
        self._queue: queue.Queue[Event | None] = queue.Queue(WAITING)
        self._changed = threading.Condition()
        self._made: tuple[float, int, shapes.Document] | None = None
        self._closed = False
        self._thread = threading.Thread(target=self._work, name="millstream-page", daemon=True)

    def start(self) -> None:
        """Begin to take in what waits."""
        self._thread.start()

    def take(self, event: Event) -> None:
        """Note an event; a queue that is full drops it and counts it, so that no query ever waits."""
        try:
            self._queue.put_nowait(event)
        except queue.Full:
            self.dropped += 1

    def close(self) -> None:
        """Take in what waits, then end; readers are told."""
        if self._thread.is_alive():
            self._queue.put(None)
            self._thread.join(timeout=5)
        if self.ended_by is not None and self.folded.run["ended"] is None and not self._closed:
            self.fold(Event("run_stopped", data={"exit_code": self.ended_by}))
        with self._changed:
            self._closed = True
            self.folded.run["live"] = False
            self._made = None
            self._changed.notify_all()
        if self._log is not None:
            self._log.close()

    def engine_figures(self) -> Mapping[str, float]:
        """What Spark's own metrics say, by its names; nothing where it is not up."""
        engine = self.engine
        return {} if engine is None else engine.figures()

    def failed(self, what: str) -> None:
        """Keep the traceback of an answer that could not be made; called while it is handled."""
        _log.exception("the live page could not answer %s", what)

    @property
    def closed(self) -> bool:
        """Has the run ended, and everything been said?"""
        return self._closed

    def fold(self, event: Event) -> None:
        """Take in one event at once, in this thread."""
        if event.event != "batch_committed":
            # Figures hold no secret, and are nine of ten events.
            event = type(event)(event.event, event.query, self._hiding.deep(event.data), event.at)
        for one in self.outward:
            one.take(event)
        with self._changed:
            self._number += 1
            entry, dot = self.folded.take(event, self._number)
            self.counts.take(event)
            self.publish({**entry, "point": dot})
            self._changed.notify_all()
        if self._log is not None:
            try:
                self._log.write(self._line(event))
            except OSError as refused:
                # A full disk must not end the page: the run goes on without its log.
                _log.warning("the run's log is not written any more: %s", refused)
                self._log = None

    def _totals(self) -> Iterable[str]:
        """What the queries' batches add up to so far, as events of the log alone."""
        at = moments.text(self.clock())
        for query in self.folded.queries.values():
            totals = Event("totals", query.name, {"counts": dict(query.counts), "starts": query.starts}, at)
            yield self._line(totals)

    def _line(self, event: Event) -> str:
        return f'{event.to_json()[:-1]}, "n": {self._number}}}'

    def recall(self, event: Event, number: int) -> None:
        """Take in an event of a run that is over: nobody waits for it."""
        with self._changed:
            self._number = number
            self.folded.take(event, number)
            self.counts.take(event)

    def publish(self, entry: dict[str, Any]) -> None:
        """Put an entry into the stream."""
        self._place += 1
        self._ring.append(Sent(self._place, entry["id"], json.dumps(entry, default=str)))

    def _work(self) -> None:
        looked = 0.0
        while True:
            try:
                event = self._queue.get(timeout=1.0)
            except queue.Empty:
                event = _NOTHING
            if event is None:
                return
            try:
                if event is not _NOTHING:
                    self.fold(event)
                if self.on_alerts is not None and time.monotonic() - looked > BEAT:
                    looked = time.monotonic()
                    self.on_alerts(self.document()["alerts"])
            except Exception:  # noqa: BLE001 - an event that cannot be told must not silence those after it
                _log.exception("the live page could not take in %s", event.event)

    def document(self) -> shapes.Document:
        """The state; one that was made within half a second is given again unless something happened."""
        with self._changed:
            now = self.clock()
            if self._made and self._made[1] == self._place and abs(now - self._made[0]) < FRESH:
                return self._made[2]
            made = self.folded.document(now)
            self._made = (now, self._place, made)
            return made

    def series(self, query: str, minutes: float) -> dict[str, Any] | None:
        """The history of a query's plots; None for a query that there is not."""
        with self._changed:
            followed = self.folded.queries.get(query)
            if followed is None:
                return None
            ended = self.folded.run["ended"]
            now = moments.seconds(ended) if ended else self.clock()
            started = moments.seconds(self.folded.run["started"])
            here = {
                "id": self.folded.run["id"],
                "from": started,
                "to": moments.seconds(ended) if ended else None,
            }
            return {
                "query": query,
                "id": self.folded.last,
                "trigger_seconds": followed.interval,
                **followed.series.told(now - minutes * 60),
                "runs": [*self.runs, here],
            }

    def where(self, last: str | None) -> int | None:
        """The place in the stream after an id; the end of the stream without one; None for one that is gone."""
        with self._changed:
            if not last:
                return self._place
            return next((sent.place for sent in reversed(self._ring) if sent.id == last), None)

    def after(self, place: int, timeout: float) -> list[Sent] | None:
        """Entries after a place, waiting for the first up to `timeout` seconds; None where some are gone."""
        with self._changed:
            if self._place <= place and not self._closed:
                self._changed.wait(timeout)
            if self._ring and self._ring[0].place > place + 1:
                return None
            return [sent for sent in self._ring if sent.place > place]

    @property
    def place(self) -> int:
        """The end of the stream."""
        return self._place

    def remember(self, earlier: Iterable[tuple[Folded, list[dict[str, Any]]]]) -> None:
        """Put runs before this one into its history, the oldest first: their points, their lines, their entries."""
        for run, entries in earlier:
            for name, query in run.queries.items():
                if name in self.folded.queries:
                    for one in query.series.points:
                        self.folded.queries[name].series.add(one)
            self.folded.log.extend(run.log)
            began = moments.seconds(run.run["started"])
            last = entries[-1]["at"] if entries else run.run["started"]
            self.runs.append({"id": run.run["id"], "from": began, "to": moments.seconds(last)})
            for entry in entries:
                self.publish(entry)


class _Nothing:
    """No event came for a while."""

    event = "nothing"


_NOTHING: Any = _Nothing()
