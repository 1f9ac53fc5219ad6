"""Every handler gets every event in order, whatever another handler does."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from millstream.engine.events import event_bus
from millstream.engine.events.event_bus import Event, EventBus

if TYPE_CHECKING:
    import pytest

PATIENCE = 20.0


def test_a_handler_whose_output_nobody_reads_holds_no_other_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_bus, "CLOSING", 0.2)
    read, ten_came = threading.Event(), threading.Event()
    shown: list[str] = []
    alerts: list[str] = []

    def show(event: Event) -> None:
        read.wait(PATIENCE)
        shown.append(event.event)

    def alert(event: Event) -> None:
        alerts.append(event.event)
        if len(alerts) == 10:
            ten_came.set()

    bus = EventBus()
    bus.listen(show)
    bus.listen(alert)
    for number in range(10):
        bus.emit(f"event {number}")

    assert ten_came.wait(PATIENCE)
    assert (shown, alerts) == ([], [f"event {number}" for number in range(10)])
    began = time.monotonic()
    bus.close()
    assert time.monotonic() - began < PATIENCE / 2
    read.set()


def test_a_handler_that_hangs_misses_events_once_too_many_wait_and_is_told_how_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(event_bus, "WAITING", 500)
    hung, go_on, was_warned = threading.Event(), threading.Event(), threading.Event()
    came = threading.Semaphore(0)
    shown: list[str] = []
    alerts: list[str] = []
    warnings: list[dict[str, object]] = []

    def show(event: Event) -> None:
        hung.set()
        go_on.wait(PATIENCE)
        shown.append(event.event)

    def alert(event: Event) -> None:
        if event.event == "warning":
            warnings.append(event.data)
            was_warned.set()
            return
        alerts.append(event.event)
        came.release()

    bus = EventBus()
    bus.listen(show)
    bus.listen(alert)
    bus.emit("first")
    assert hung.wait(PATIENCE)
    for number in range(1500):
        # One by one, because a burst would also fill the queue of a handler that does not hang.
        assert came.acquire(timeout=PATIENCE)
        bus.emit(f"event {number}")

    assert came.acquire(timeout=PATIENCE)
    (listener, other) = bus._listeners
    assert (listener.waiting.qsize(), listener.lost, other.lost) == (500, 1000, 0)
    assert warnings == []
    go_on.set()
    assert was_warned.wait(PATIENCE)
    bus.close()
    assert [warning["lost"] for warning in warnings] == [1000]
    assert shown == ["first", *(f"event {number}" for number in range(500)), "warning"]
    assert alerts == ["first", *(f"event {number}" for number in range(1500))]


def test_the_end_waits_for_the_last_event_of_each_handler() -> None:
    taken: list[list[str]] = [[], []]
    bus = EventBus()
    for events in taken:
        bus.listen(lambda event, events=events: (threading.Event().wait(0.001), events.append(event.event)))  # type: ignore[misc]
    for number in range(100):
        bus.emit(str(number))

    bus.close()

    assert taken == [[str(number) for number in range(100)]] * 2


def test_a_handler_that_fails_gets_the_next_event_and_one_whose_reader_has_gone_does_not() -> None:
    calls: list[str] = []

    def failing(event: Event) -> None:
        calls.append(f"failing {event.event}")
        raise ValueError(event.event)

    def closed(event: Event) -> None:
        calls.append(f"closed {event.event}")
        raise BrokenPipeError

    bus = EventBus()
    bus.listen(failing)
    bus.listen(closed)
    bus.emit("a")
    bus.emit("b")

    bus.close()

    assert sorted(calls) == ["closed a", "failing a", "failing b"]
