"""The handle of a recorded query. It behaves like a query that has ended without an error and without rows."""

from __future__ import annotations

import ast
import uuid
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.listener import StreamingQueryProgress
from pyspark.sql.streaming.query import StreamingQuery, StreamingQueryManager

from millstream.analysis.query.plan_model import Read
from millstream.checking.query_plan import operators
from millstream.checking.scripts.interception import call_sites
from millstream.checking.scripts.interception.placeholders import Unknown
from millstream.checking.scripts.interception.recording import WaitCall

if TYPE_CHECKING:
    from millstream.checking.scripts.interception.monkeypatch import Patches
    from millstream.checking.scripts.interception.recording import Doubt, Recording, StartedQuery


# How often a script may list the running queries before the list becomes empty, so that a polling loop ends.
MOST_LOOKS = 8


class CheckedQuery(StreamingQuery):
    """The result of `start()` in a check."""

    def __init__(self, query: StartedQuery, recording: Recording) -> None:
        self._query = query
        self._recording = recording
        self._id, self._run = str(uuid.uuid4()), str(uuid.uuid4())
        # The first read of `isActive` is true, so scripts can check the start. The second ends a polling loop.
        self._looks = 1
        self._is_stopped = False
        self._waits = len(recording.waits)
        self._lines = call_sites.list_user_lines()
        self.restarts = 0
        """How often the script has started the query again."""
        recording.handles.append(self)

    @property
    def query(self) -> StartedQuery:
        """What was recorded of the query."""
        return self._query

    def is_restarted_by(self, later: StartedQuery) -> bool:
        """Return whether a later start is of the same query: by the same call, after the script waited for its end.

        The call is in a loop, which reads the same sources in its next round. If all calls that lead to it are the
        same, the script may have waited for the end of another query of the loop instead.
        """
        waits = self._recording.waits[self._waits :]
        is_own = any(wait.query in (None, self._query.number) for wait in waits)
        return (
            self._is_at_same_place(later)
            and (is_own or (self._is_in_loop() and not all(wait.is_bounded for wait in waits)))
            and list_sources(later) == list_sources(self._query)
        )

    def _is_at_same_place(self, later: StartedQuery) -> bool:
        """Return whether a query is started by the same call, for the same rows and offsets.

        In a loop without an end, the name of the checkpoint may have the time in it.
        """
        place, checkpoint = _place(self._query), self._query.checkpoint
        return place == _place(later) and (
            checkpoint == later.checkpoint
            or (bool(checkpoint) and self._is_in_loop() and _is_endless(call_sites.find_loop()))
        )

    def _is_in_loop(self) -> bool:
        """Return whether the calls that run are those that started the query."""
        return bool(self._lines) and call_sites.list_user_lines() == self._lines

    @property
    def id(self) -> str:
        """An identifier that is valid only in this check."""
        return self._id

    @property
    def runId(self) -> str:  # noqa: N802 - Spark's name
        """An identifier that is valid only in this check."""
        return self._run

    @property
    def name(self) -> str:
        """The name that the script gave to the query."""
        return self._query.name if self._query.has_name else None  # type: ignore[return-value]

    @property
    def isActive(self) -> bool:  # noqa: N802 - Spark's name
        """True at the first access, false afterwards."""
        self._looks -= 1
        if self._looks < 0:
            self._wait(bounded=_is_bounded(call_sites.find_loop()))
        return self._looks >= 0

    @property
    def is_running(self) -> bool:
        """True until the script has read `isActive` or stopped the query."""
        return self._looks > 0

    @property
    def status(self) -> dict[str, Any]:
        """The status of a query that has ended."""
        return {"message": "Stopped", "isDataAvailable": False, "isTriggerActive": False}

    @property
    def lastProgress(self) -> StreamingQueryProgress:  # noqa: N802 - Spark's name
        """One empty batch."""
        # What else the script reads of it depends on the query and its rows.
        self._recording.has_emptied_sources = True
        return StreamingQueryProgress.fromJson(_PROGRESS | {"id": self._id, "runId": self._run})

    @property
    def recentProgress(self) -> list[StreamingQueryProgress]:  # noqa: N802 - Spark's name
        """One empty batch."""
        return [self.lastProgress]

    def awaitTermination(self, timeout: int | None = None) -> bool | None:  # noqa: N802 - Spark's name
        """Return at once."""
        self._wait(bounded=timeout is not None or self._is_stopped)
        return None if timeout is None else True

    def processAllAvailable(self) -> None:  # noqa: N802 - Spark's name
        """Return at once."""
        self._wait(bounded=True)

    def stop(self) -> None:
        """Mark the query as stopped. A script that stops its query does not have to wait for it."""
        self._looks, self._is_stopped = 0, True
        self._wait(bounded=True)

    def explain(self, extended: bool = False) -> None:
        """Print nothing."""

    def exception(self) -> None:
        """Return None, because the query ended without an error."""

    def _wait(self, *, bounded: bool = False) -> None:
        started = len(self._recording.queries)
        self._recording.waits.append(
            WaitCall(self._query.number, started, call_sites.current_span(), bounded)
        )


def _is_bounded(loop: call_sites.Loop | None) -> bool:
    """Return whether a loop that asks whether a query is active ends also while it is: by a time or a number."""
    if not isinstance(loop, ast.While):
        return True
    test = loop.test
    parts = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]
    return any(
        isinstance(part, ast.Compare)
        and isinstance(part.ops[0], ast.Lt | ast.LtE | ast.Gt | ast.GtE)
        and not any(isinstance(node, ast.Attribute) and node.attr == "active" for node in ast.walk(part))
        for part in parts
    )


def _is_endless(loop: call_sites.Loop | None) -> bool:
    return isinstance(loop, ast.While) and isinstance(loop.test, ast.Constant) and bool(loop.test.value)


def _place(query: StartedQuery) -> tuple[Any, ...]:
    """Return where a query was started, its name, and where it stores its rows."""
    return query.span, query.has_name and query.name, query.target


def list_sources(query: StartedQuery) -> set[str | None] | Doubt:
    """Return the names of the sources that a query reads, or the doubt about them."""
    if isinstance(query.frame, Unknown):
        return query.frame.doubt
    return {node.source for node in operators(query.frame).walk() if isinstance(node, Read)}


class QueryManager:
    """Replaces the methods of `spark.streams`."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self._looks = 0
        self._known_count = 0

    def install(self, patches: Patches) -> None:
        """Replace the methods. Listeners are ignored, because no query runs."""
        manager = StreamingQueryManager
        handles = self.recording.handles
        patches.set(manager, "active", property(lambda _streams: self._active()))
        patches.set(
            manager, "get", lambda _streams, id: next((handle for handle in handles if handle.id == id), None)
        )
        patches.set(manager, "awaitAnyTermination", self._await_any)
        for method in ("addListener", "removeListener"):
            patches.set(manager, method, lambda *_args, **_kwargs: None)
        patches.set(manager, "resetTerminated", lambda _streams: None)

    def _active(self) -> list[CheckedQuery]:
        """Return the running queries, or none after `MOST_LOOKS` calls without a new start."""
        running = [handle for handle in self.recording.handles if handle.is_running]
        if len(self.recording.handles) > self._known_count:
            self._known_count, self._looks = len(self.recording.handles), 0
        self._looks += 1
        if not running or self._looks <= MOST_LOOKS:
            return running
        self._await_any()
        return []

    def _await_any(self, timeout: int | None = None) -> bool | None:
        started = len(self.recording.queries)
        self.recording.waits.append(WaitCall(None, started, call_sites.current_span(), timeout is not None))
        return None if timeout is None else True


_PROGRESS: dict[str, Any] = {
    "name": None,
    "timestamp": "1970-01-01T00:00:00.000Z",
    "batchId": 0,
    "batchDuration": 0,
    "numInputRows": 0,
    "inputRowsPerSecond": 0.0,
    "processedRowsPerSecond": 0.0,
    "durationMs": dict.fromkeys(
        (
            "addBatch",
            "commitOffsets",
            "getBatch",
            "latestOffset",
            "queryPlanning",
            "triggerExecution",
            "walCommit",
        ),
        0,
    ),
    "eventTime": {"watermark": "1970-01-01T00:00:00.000Z"},
    "stateOperators": [],
    "sources": [
        {
            "description": "",
            "startOffset": "{}",
            "endOffset": "{}",
            "latestOffset": "{}",
            "numInputRows": 0,
            "inputRowsPerSecond": 0.0,
            "processedRowsPerSecond": 0.0,
            "metrics": {},
        }
    ],
    "sink": {"description": "", "numOutputRows": 0, "metrics": {}},
    "observedMetrics": {},
}
