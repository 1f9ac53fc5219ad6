"""A source that does not answer is told of, though the query looks alive."""

from __future__ import annotations

from typing import Any

import pytest

from millstream.engine import supervisor as supervision
from millstream.engine.failure_classifier import FailureKind, QueryFailure
from millstream.engine.supervisor import SILENCE, QueryPhase, Supervisor
from millstream.spec.backoff import Backoff


class Told:
    """Events, kept."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def emit(self, event: str, *_: str, **__: Any) -> None:
        self.names.append(event)


class Running:
    """A query that Spark calls active."""

    name = "funnel"
    delivery = None
    handle = object()
    is_active = True
    has_delivered = is_idle = False
    asked: str | None = None

    def start(self) -> None:
        """As Spark, at once."""

    def look(self) -> None:
        """Nothing to tell."""

    def unfinished(self) -> None:
        """No batch."""

    def has_passed_gaps(self) -> bool:
        return False

    def awaited_source(self) -> str | None:
        return self.asked


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that the test moves."""
    now = [100.0]
    monkeypatch.setattr(supervision.time, "monotonic", lambda: now[0])
    return now


def look(query: Running, told: Told) -> Any:
    watching = Supervisor([query], Backoff(), told)  # type: ignore[arg-type, list-item]
    (watched,) = watching.watched
    watched.state = QueryPhase.RUNNING
    return lambda: watching._look_at(watched)


def test_a_short_question_is_not_worth_a_word(clock: list[float]) -> None:
    query, messages = Running(), Told()
    once = look(query, messages)

    query.asked = "KafkaV2[Subscribe[clicks]]"
    once()
    clock[0] += SILENCE / 2
    once()

    assert messages.names == []


def test_a_long_silence_is_told_once_and_so_is_its_end(clock: list[float]) -> None:
    query, messages = Running(), Told()
    once = look(query, messages)

    query.asked = "KafkaV2[Subscribe[clicks]]"
    for _ in range(4):
        once()
        clock[0] += SILENCE
    query.asked = None
    once()
    once()

    assert messages.names == ["waiting", "going_on"]


def test_a_query_that_starts_again_has_had_no_answer(clock: list[float]) -> None:
    query, messages = Running(), Told()
    watching = Supervisor([query], Backoff(), messages)  # type: ignore[arg-type, list-item]
    (watched,) = watching.watched

    for _ in range(2):
        watching._start_query(watched)
        for asked in (None, *["KafkaV2[Subscribe[clicks]]"] * 3):
            query.asked = asked
            watching._look_at(watched)
            clock[0] += SILENCE
        watching._handle_failure(watched, QueryFailure(FailureKind.OUTAGE, "no broker answers"))

    assert messages.names == ["waiting", "retry"] * 2


def test_questions_with_answers_between_them_do_not_add_up(clock: list[float]) -> None:
    query, messages = Running(), Told()
    once = look(query, messages)

    for turn in range(20):
        query.asked = "KafkaV2[Subscribe[clicks]]" if turn % 2 else None
        once()
        clock[0] += SILENCE / 2

    assert messages.names == []
