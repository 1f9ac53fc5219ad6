"""What is sent elsewhere is waited for by nobody, and what is lost is counted."""

from __future__ import annotations

import http.client
import threading
from typing import Any

import pytest

from millstream.dashboard.export.exporter import FAREWELL, ExportQueue
from millstream.engine.events.event_bus import Event


class Kept:
    """A teller that tells each event, takes it after some refusals, and may stand still until it is let go."""

    name = "kept"

    def __init__(self, *, refuses: int = 0, stands: bool = False) -> None:
        self.taken: list[str] = []
        self.tries = 0
        self.busy, self.done = threading.Event(), threading.Event()
        self.go = threading.Event()
        self._refuses = refuses
        if not stands:
            self.go.set()

    def convert(self, event: Event) -> list[str]:
        if event.event == "odd":
            raise ValueError("cannot be told")
        return [event.event]

    def send(self, messages: list[Any]) -> None:
        self.busy.set()
        assert self.go.wait(60)
        self.tries += 1
        if self.tries <= self._refuses:
            raise ConnectionRefusedError("http://user:S3CR3T@away")
        self.taken += messages
        messages.clear()
        self.done.set()

    def close(self) -> None:
        self.busy.set()


def test_events_arrive_in_their_order_before_the_end() -> None:
    remaining = Kept()
    outward = ExportQueue(remaining)

    for name in ("a", "b", "c"):
        outward.take(Event(name))
    outward.close()

    assert remaining.taken == ["a", "b", "c"]
    assert (outward.sent_count, outward.lost_count) == (3, 0)


def test_a_receiver_that_is_away_is_asked_again() -> None:
    remaining = Kept(refuses=2)
    outward = ExportQueue(remaining, waits=(0.001, 0.001))

    outward.take(Event("a"))
    assert remaining.done.wait(60)
    outward.close()

    assert (remaining.taken, remaining.tries, outward.lost_count) == (["a"], 3, 0)


def test_what_is_not_taken_is_counted_and_its_address_is_told_nowhere(
    caplog: pytest.LogCaptureFixture,
) -> None:
    outward = ExportQueue(Kept(refuses=100), waits=())

    for _ in range(3):
        outward.take(Event("a"))
    outward.close()

    assert (outward.sent_count, outward.lost_count) == (0, 3)
    assert "kept: the receiver does not accept messages" in caplog.text
    assert "S3CR3T" not in caplog.text


def test_a_full_queue_drops_and_holds_nobody() -> None:
    remaining = Kept(stands=True)
    outward = ExportQueue(remaining, waiting=2)
    outward.take(Event("a"))
    assert remaining.busy.wait(60)

    for _ in range(5):
        outward.take(Event("b"))

    assert outward.lost_count == 3
    remaining.go.set()
    outward._thread.join(0)


def test_the_end_of_a_run_waits_for_no_receiver_longer_than_its_farewell(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("millstream.dashboard.export.exporter.FAREWELL", 0.05)
    remaining = Kept(stands=True)
    outward = ExportQueue(remaining)
    outward.take(Event("a"))

    outward.close()

    assert remaining.taken == []
    assert FAREWELL < 10
    remaining.go.set()
    outward._thread.join(60)
    assert remaining.taken == ["a"]


def test_an_event_that_cannot_be_told_silences_no_other(caplog: pytest.LogCaptureFixture) -> None:
    remaining = Kept()
    outward = ExportQueue(remaining)

    for name in ("odd", "a"):
        outward.take(Event(name))
    outward.close()

    assert remaining.taken == ["a"]
    assert "could not convert event odd" in caplog.text


@pytest.mark.parametrize(
    "odd", [http.client.BadStatusLine("\x15\x03"), http.client.InvalidURL("a b"), ValueError()]
)
def test_an_answer_that_is_not_http_is_asked_for_again(odd: Exception) -> None:
    class Odd(Kept):
        def send(self, messages: list[Any]) -> None:
            if not self.tries:
                self.tries = 1
                raise odd
            super().send(messages)

    receiver = Odd()
    outward = ExportQueue(receiver, waits=(0.001,))
    outward.take(Event("a"))
    assert receiver.done.wait(60)
    outward.close()

    assert (receiver.taken, outward.sent_count, outward.lost_count) == (["a"], 1, 0)
