"""Ask brokers every few seconds where the sources of a run end, so that lag is never older than that."""

from __future__ import annotations

import threading
import time
from functools import partial
from typing import TYPE_CHECKING

from millstream.diagnostics.failure import MillstreamError
from millstream.engine.background_threads import BackgroundThread

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from millstream.connectors.api.values.offsets import EndOffsets
    from millstream.dashboard.http.event_stream import EventStream
    from millstream.pipeline.model import Pipeline

# Seconds from one look at a source to the next.
EVERY = 3.0


def watched_sources(pipeline: Pipeline, sources: Iterable[str]) -> dict[str, EndOffsets]:
    """Return a reader for each of these sources that has end offsets and is read as a stream."""
    readers = {
        name: pipeline.sources[name].source.watch_end_offsets()
        for name in sources
        if name in pipeline.sources and not pipeline.sources[name].static
    }
    return {name: reader for name, reader in readers.items() if reader is not None}


class EndOffsetPoll:
    """Looks at each source in its own thread, so that a broker that is down holds up no other."""

    def __init__(
        self,
        readers: Mapping[str, EndOffsets],
        feed: EventStream,
        *,
        every: float = EVERY,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._feed, self._every, self._clock = feed, every, clock
        self._over = threading.Event()
        self._threads = [
            BackgroundThread(f"millstream-ends-{name}", partial(self._watch, name, reader))
            for name, reader in readers.items()
        ]

    def start(self) -> None:
        """Start to look."""
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """Look no more. A look that waits for a broker ends by itself."""
        self._over.set()

    def _watch(self, source: str, reader: EndOffsets) -> None:
        while not self._over.is_set():
            look_at(source, reader, self._feed, self._clock)
            self._over.wait(self._every)


def look_at(
    source: str, reader: EndOffsets, feed: EventStream, clock: Callable[[], float] = time.time
) -> None:
    """Ask once, and record the result or the silence. The time of a result is that before the question."""
    asked_at = clock()
    try:
        ends = reader.read()
    except MillstreamError as error:
        feed.observe_silence(source, error.what, asked_at)
    else:
        feed.observe_ends(source, ends, asked_at)
