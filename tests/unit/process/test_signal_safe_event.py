"""A signal at any instruction of a wait: the wait ends, and the handler does not wait for what it has interrupted."""

from __future__ import annotations

import itertools
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest

from millstream.engine import supervisor as supervision
from millstream.engine.supervisor import Supervisor
from millstream.process.signal_safe_event import SignalSafeEvent
from millstream.spec.backoff import Backoff

if TYPE_CHECKING:
    from collections.abc import Callable

PATIENCE = 20.0


def interrupt(work: Callable[[], object], number: int, handler: Callable[[], object]) -> bool:
    """Run `work`, and `handler` before its instruction of that number. Return whether it has so many."""
    instructions = itertools.count()
    interrupted = threading.Event()

    def trace(frame: Any, event: str, _: object) -> Any:
        frame.f_trace_opcodes = True
        if event == "opcode" and next(instructions) == number:
            interrupted.set()
            handler()
        return trace

    def work_traced() -> None:
        sys.settrace(trace)
        try:
            work()
        finally:
            sys.settrace(None)

    thread = threading.Thread(target=work_traced, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    assert not thread.is_alive(), f"a signal at instruction {number} makes it wait forever"
    return interrupted.is_set()


def test_a_handler_sets_the_event_at_any_instruction_of_a_wait() -> None:
    for number in itertools.count():
        event = SignalSafeEvent()
        if not interrupt(lambda event=event: event.wait(0.001), number, event.set):  # type: ignore[misc]
            break
        assert event.is_set()
        assert event.wait(PATIENCE)
    assert number > 10, "the wait was not traced"
    assert not event.is_set()


def test_a_handler_sets_the_event_at_any_instruction_of_another_set() -> None:
    for number in itertools.count():
        event = SignalSafeEvent()
        if not interrupt(event.set, number, event.set):
            break
        assert event.wait(PATIENCE)
    assert number > 10, "the call was not traced"


def test_every_wait_ends_as_soon_as_another_thread_sets_the_event() -> None:
    event = SignalSafeEvent()
    ended: list[bool] = []
    threads = [threading.Thread(target=lambda: ended.append(event.wait(1e6)), daemon=True) for _ in range(3)]
    for thread in threads:
        thread.start()
    assert not event.wait(0.05)
    event.set()
    for thread in threads:
        thread.join(PATIENCE)
    assert ended == [True] * 3


@pytest.mark.parametrize("timeout", [0, 1e-9, 1e-6])
def test_the_shortest_waits_end(timeout: float) -> None:
    event = SignalSafeEvent()
    for _ in range(1000):
        assert not event.wait(timeout)


class Endless:
    """A query that goes on until the run is asked to end."""

    name = "endless"
    handle = type("Handle", (), {"exception": lambda _: None})()
    delivery = failure = following = batch = None
    is_active, has_delivered, is_idle = True, True, False

    def has_passed_gaps(self) -> bool:
        return False

    def awaited_source(self) -> None:
        return None

    def has_ended(self) -> bool:
        return True

    def __getattr__(self, name: str) -> Any:
        return lambda: None


class Silent:
    def emit(self, *_: object, **__: object) -> None: ...


def test_a_run_ends_at_a_signal_at_any_instruction(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervision, "LOOK", 0.001)
    for number in range(500):
        supervisor = Supervisor([Endless()], Backoff(), Silent())  # type: ignore[list-item, arg-type]
        assert interrupt(supervisor.run, number, supervisor.end)
        assert supervisor.exit_code == 0
