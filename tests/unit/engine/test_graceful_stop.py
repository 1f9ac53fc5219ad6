"""A query that is asked to end is stopped only where that interrupts no batch."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from millstream.engine.streaming_query import RunningQuery

NOTHING: Any = None


class Handle:
    """Spark's handle of a query whose thread is in that state; notes whether it was stopped."""

    def __init__(self, thread: str, *, is_active: bool) -> None:
        self.is_stopped = False
        state = SimpleNamespace(name=lambda: thread)
        execution = SimpleNamespace(getState=lambda: state, isAlive=lambda: True)
        stream = SimpleNamespace(
            status=lambda: SimpleNamespace(isTriggerActive=lambda: is_active),
            queryExecutionThread=lambda: execution,
        )
        self._jsq = SimpleNamespace(streamingQuery=lambda: stream)

    def stop(self) -> None:
        self.is_stopped = True


@pytest.mark.parametrize(
    ("thread", "is_active", "is_stopped"),
    [
        pytest.param("TIMED_WAITING", False, True, id="waits for its next trigger"),
        pytest.param("TIMED_WAITING", True, False, id="waits in its batch"),
        # On a busy machine a thread that has seen that it is active may stay here for long before its trigger begins.
        pytest.param("RUNNABLE", False, False, id="is about to begin a batch"),
        pytest.param("BLOCKED", False, False, id="is about to begin a batch, behind a lock"),
    ],
)
def test_a_query_that_was_asked_to_end_is_stopped_only_while_it_sleeps(
    thread: str, is_active: bool, is_stopped: bool
) -> None:
    handle: Any = Handle(thread, is_active=is_active)
    query = RunningQuery(NOTHING, NOTHING, "orders", NOTHING, NOTHING, NOTHING, handle=handle)

    query.ask_to_end()

    assert handle.is_stopped is is_stopped
