"""With as many queries as cores, or more, the first one begins alone."""

from __future__ import annotations

from typing import Any

import pytest

from millstream.engine import supervisor as supervision
from millstream.engine.failure_classifier import FailureKind, QueryFailure
from millstream.engine.supervisor import QueryPhase, Supervisor
from millstream.spec.backoff import Backoff


class Starting:
    """A query that starts, and of which a test says how far it is."""

    handle = None
    is_active = True
    has_delivered = False
    is_idle = False
    batch = None

    def __init__(self, name: str) -> None:
        self.name = name
        self.started = False

    def start(self) -> None:
        self.started = True

    def look(self) -> None:
        pass

    def has_passed_gaps(self) -> bool:
        return False

    def awaited_source(self) -> None:
        return None


class Start:
    """Three queries, and a clock that the test moves."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
        self.now = 100.0
        monkeypatch.setattr(supervision.time, "monotonic", lambda: self.now)
        self.queries = [Starting(name) for name in ("first", "second", "third")]
        until = self.now + seconds
        self.supervisor = Supervisor(self.queries, Backoff(), self, alone_until=until)  # type: ignore[arg-type]

    def emit(self, *_: str, **data: Any) -> None:
        pass

    def look(self) -> list[str]:
        """Look at all once; gives those that have started."""
        for watched in self.supervisor.watched:
            self.supervisor._look_at(watched)
        return [query.name for query in self.queries if query.started]


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Start:
    return Start(monkeypatch, seconds=10)


def test_the_others_wait_until_the_first_has_delivered_a_batch(start: Start) -> None:
    assert start.look() == ["first"]
    assert start.look() == ["first"]

    start.queries[0].has_delivered = True

    assert start.look() == ["first", "second", "third"]


def test_they_wait_for_a_long_batch_only_so_long(start: Start) -> None:
    start.look()
    start.now += 9.9
    assert start.look() == ["first"]

    start.now += 0.1

    assert start.look() == ["first", "second", "third"]


def test_a_first_query_without_rows_keeps_nobody_waiting(start: Start) -> None:
    start.look()
    start.queries[0].is_idle = True

    assert start.look() == ["first", "second", "third"]


def test_a_first_query_that_failed_or_ended_keeps_nobody_waiting(start: Start) -> None:
    start.look()
    start.supervisor._handle_failure(
        start.supervisor.watched[0], QueryFailure(FailureKind.OUTAGE, "the broker is away")
    )

    assert start.supervisor.watched[0].state is QueryPhase.RETRYING
    assert start.look() == ["first", "second", "third"]


def test_without_a_head_start_all_begin_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Start(monkeypatch, seconds=0).look() == ["first", "second", "third"]
