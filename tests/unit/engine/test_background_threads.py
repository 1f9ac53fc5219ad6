"""A thread beside a run that fails is heard of, and starts again."""

from __future__ import annotations

import queue
import threading
from typing import TYPE_CHECKING

import pytest

from millstream.engine.background_threads import (
    RESTARTS,
    BackgroundThread,
    ThreadFailure,
    subscribe,
    unsubscribe,
)
from millstream.engine.events.event_bus import Event, EventBus
from millstream.engine.events.event_messages import format_event
from millstream.spec.secrets.secret import Secret

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def failures() -> Iterator[list[ThreadFailure]]:
    actual: list[ThreadFailure] = []
    subscribe(actual.append)
    yield actual
    unsubscribe(actual.append)


def test_what_comes_after_a_failure_is_worked_on(failures: list[ThreadFailure]) -> None:
    todo: queue.SimpleQueue[int] = queue.SimpleQueue()
    result: list[int] = []

    def work() -> None:
        while (number := todo.get()) >= 0:
            result.append(10 // number)

    thread = BackgroundThread("division", work)
    for number in (1, 0, 5, -1):
        todo.put(number)
    thread.start()
    thread.join(60)

    assert result == [10, 2]
    assert [str(failure) for failure in failures] == [
        "thread 'division' failed with ZeroDivisionError: integer division or modulo by zero; it was started again"
    ]


def test_a_thread_that_fails_whenever_it_starts_stays_dead(failures: list[ThreadFailure]) -> None:
    def work() -> None:
        raise KeyError("x")

    thread = BackgroundThread("hopeless", work)
    thread.start()
    thread.join(60)

    assert not thread.is_alive()
    assert [failure.is_restarted for failure in failures] == [True] * RESTARTS + [False]


def test_an_exception_that_is_meant_to_end_a_process_is_reported_too(failures: list[ThreadFailure]) -> None:
    def work() -> None:
        raise SystemExit(3)

    thread = BackgroundThread("exits", work, restarts=0)
    thread.start()
    thread.join(60)

    assert [(failure.error, failure.is_restarted) for failure in failures] == [("SystemExit: 3", False)]


def test_the_events_of_a_run_tell_of_a_thread_that_failed_without_its_secret() -> None:
    word = Secret("c4n @ry/%:'\"x").reveal()
    messages: list[Event] = []
    received = threading.Event()
    events = EventBus()
    events.listen(lambda event: (messages.append(event), received.set()))  # type: ignore[arg-type,return-value]

    def work() -> None:
        raise ValueError(f"URL can't contain {word!r}\nor {word}")

    thread = BackgroundThread("millstream-webhook", work, restarts=0)
    thread.start()

    assert received.wait(60)
    events.close()
    assert messages[0].event == "warning"
    output = format_event(messages[0]) or ""
    assert output.startswith("thread 'millstream-webhook' failed with ValueError: URL can't contain ")
    assert "c4n" not in output
    assert "ry/" not in output
