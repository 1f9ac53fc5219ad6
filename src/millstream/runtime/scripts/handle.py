"""The handle of a query that was recorded and not started: it has ended, without an error and without rows."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.listener import StreamingQueryProgress
from pyspark.sql.streaming.query import StreamingQuery, StreamingQueryManager

from millstream.runtime.scripts import calls
from millstream.runtime.scripts.record import Wait

if TYPE_CHECKING:
    from millstream.runtime.scripts.patches import Patches
    from millstream.runtime.scripts.record import Recording, Started


# How often a script may look at the list of running queries before all have ended; a loop does while any runs.
MOST_LOOKS = 8


class Handle(StreamingQuery):
    """What `start()` gives."""

    def __init__(self, query: Started, recording: Recording) -> None:
        self._query = query
        self._recording = recording
        self._id, self._run = str(uuid.uuid4()), str(uuid.uuid4())
        # A script that looks once whether its query came up sees that it did; one that loops while it runs ends.
        self._looks = 1
        recording.handles.append(self)

    @property
    def id(self) -> str:
        """An identifier, of this check alone."""
        return self._id

    @property
    def runId(self) -> str:  # noqa: N802 - Spark's name
        """An identifier, of this check alone."""
        return self._run

    @property
    def name(self) -> str:
        """The name given to the query."""
        return self._query.name if self._query.named else None  # type: ignore[return-value]

    @property
    def isActive(self) -> bool:  # noqa: N802 - Spark's name
        """True at the first look, and false from then on."""
        self._looks -= 1
        if self._looks < 0:
            self._wait()
        return self._looks >= 0

    @property
    def running(self) -> bool:
        """Has the script not looked at it yet, nor stopped it?"""
        return self._looks > 0

    @property
    def status(self) -> dict[str, Any]:
        """That of a query that has ended."""
        return {"message": "Stopped", "isDataAvailable": False, "isTriggerActive": False}

    @property
    def lastProgress(self) -> StreamingQueryProgress:  # noqa: N802 - Spark's name
        """One empty batch."""
        return StreamingQueryProgress.fromJson(_PROGRESS | {"id": self._id, "runId": self._run})

    @property
    def recentProgress(self) -> list[StreamingQueryProgress]:  # noqa: N802 - Spark's name
        """One empty batch."""
        return [self.lastProgress]

    def awaitTermination(self, timeout: int | None = None) -> bool | None:  # noqa: N802 - Spark's name
        """Return at once."""
        self._wait(bounded=timeout is not None)
        return None if timeout is None else True

    def processAllAvailable(self) -> None:  # noqa: N802 - Spark's name
        """Return at once."""
        self._wait(bounded=True)

    def stop(self) -> None:
        """The query has ended already."""
        self._looks = 0

    def explain(self, extended: bool = False) -> None:
        """Say nothing."""

    def exception(self) -> None:
        """It ended without one."""

    def _wait(self, *, bounded: bool = False) -> None:
        started = len(self._recording.queries)
        self._recording.waits.append(Wait(self._query.number, started, calls.here(), bounded))


class Manager:
    """Replaces the methods of `spark.streams`."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self._looks = 0
        self._known = 0

    def install(self, patches: Patches) -> None:
        """Replace the methods; a listener would have Spark call back, and no query runs that it could hear."""
        manager = StreamingQueryManager
        handles = self.recording.handles
        patches.set(manager, "active", property(lambda _streams: self._active()))
        patches.set(manager, "get", lambda _streams, id: next((one for one in handles if one.id == id), None))
        patches.set(manager, "awaitAnyTermination", self._any)
        for method in ("addListener", "removeListener"):
            patches.set(manager, method, lambda _streams, _listener: None)
        patches.set(manager, "resetTerminated", lambda _streams: None)

    def _active(self) -> list[Handle]:
        """The queries that run, and none after so many looks without a start between them."""
        running = [one for one in self.recording.handles if one.running]
        if len(self.recording.handles) > self._known:
            self._known, self._looks = len(self.recording.handles), 0
        self._looks += 1
        if not running or self._looks <= MOST_LOOKS:
            return running
        self._any()
        return []

    def _any(self, timeout: int | None = None) -> bool | None:
        started = len(self.recording.queries)
        self.recording.waits.append(Wait(None, started, calls.here(), timeout is not None))
        return None if timeout is None else True


_PROGRESS: dict[str, Any] = {
    "name": None,
    "timestamp": "1970-01-01T00:00:00.000Z",
    "batchId": 0,
    "batchDuration": 0,
    "numInputRows": 0,
    "inputRowsPerSecond": 0.0,
    "processedRowsPerSecond": 0.0,
    "durationMs": {},
    "eventTime": {},
    "stateOperators": [],
    "sources": [],
    "sink": {"description": "", "numOutputRows": 0, "metrics": {}},
    "observedMetrics": {},
}
