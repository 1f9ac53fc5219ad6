"""`run --for`: when the time of a run begins, and that it ends."""

from __future__ import annotations

from typing import Any

import pytest

from millstream.engine import supervisor as supervision
from millstream.engine.supervisor import QueryPhase, Supervisor
from millstream.spec.backoff import Backoff


class Query:
    """A query that a test moves on."""

    handle = None
    is_active = True
    has_delivered = False
    is_idle = False
    batch = None
    waits_for: str | None = None

    def __init__(self, name: str) -> None:
        self.name = name

    def start(self) -> None: ...
    def look(self) -> None: ...
    def stop(self) -> None: ...
    def close(self) -> None: ...
    def settle(self) -> None: ...
    def ask_to_end(self) -> None: ...

    def has_ended(self) -> bool:
        return True

    def has_passed_gaps(self) -> bool:
        return False

    def awaited_source(self) -> str | None:
        return self.waits_for


class Clock:
    """A clock that moves by one second whenever the supervisor waits, and does what is due by then."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        self.due: dict[float, Any] = {}
        monkeypatch.setattr(supervision.time, "monotonic", lambda: self.now)

    def wait(self, _: float) -> None:
        self.now += 1
        if self.now in self.due:
            self.due.pop(self.now)()
        assert self.now < 1000, "the run does not end"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def seconds_of(clock: Clock, queries: list[Query]) -> float:
    """Run for 20 seconds, and return the time at which the run ended."""

    class Events:
        def emit(self, *_: str, **__: Any) -> None: ...

    supervisor = Supervisor(queries, Backoff(), Events())  # type: ignore[arg-type]
    supervisor._end_requested.wait = clock.wait  # type: ignore[method-assign, assignment]
    for query in queries:
        query.handle = type("Handle", (), {"exception": lambda _: None})()  # type: ignore[assignment]
    assert supervisor.run(20)
    assert all(watched.state is QueryPhase.ENDED for watched in supervisor.watched)
    return clock.now


def test_the_time_begins_with_the_first_committed_batch(clock: Clock) -> None:
    slow, fast = Query("slow"), Query("fast")
    clock.due[45] = lambda: setattr(fast, "has_delivered", True)

    assert seconds_of(clock, [slow, fast]) == 65


def test_the_time_begins_when_no_source_has_rows(clock: Clock) -> None:
    query = Query("quiet")
    clock.due[5] = lambda: setattr(query, "is_idle", True)

    assert seconds_of(clock, [query]) == 25


def test_one_idle_query_does_not_begin_the_time_of_another_in_its_first_batch(clock: Clock) -> None:
    quiet, busy = Query("quiet"), Query("busy")
    quiet.is_idle = True
    clock.due[30] = lambda: setattr(busy, "has_delivered", True)

    assert seconds_of(clock, [quiet, busy]) == 50


def test_a_silent_source_does_not_hold_up_the_end(clock: Clock) -> None:
    query = Query("waiting")
    query.waits_for = "clicks"

    assert seconds_of(clock, [query]) == 27
