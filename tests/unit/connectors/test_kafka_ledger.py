"""A ledger of Kafka that takes long to read."""

from __future__ import annotations

from typing import Any

import pytest

from millstream.connectors.kafka import ledger
from millstream.diagnostics.failure import Outage


class Mark:
    """A mark of a batch, or the end of the topic."""

    def __init__(self, number: int, *, end: bool = False) -> None:
        self._number, self._end = number, end

    def error(self) -> Any:
        return End() if self._end else None

    def key(self) -> bytes:
        return b"mine"

    def value(self) -> bytes:
        return b'{"batch": %d}' % self._number

    def offset(self) -> int:
        return self._number

    def timestamp(self) -> tuple[int, int]:
        return 0, 0


class End:
    def name(self) -> str:
        return "_PARTITION_EOF"


class SlowTopic:
    """Hands out a mark a minute, or nothing from some mark on."""

    def __init__(self, marks: int, until: int) -> None:
        self.now, self._marks, self._until, self._next = 0.0, marks, until, 0

    def __call__(self, *_: Any, **__: Any) -> SlowTopic:
        return self

    def assign(self, _: Any) -> None: ...

    def close(self) -> None: ...

    def poll(self, _: float) -> Mark | None:
        self.now += 60.0
        if self._next >= self._until:
            return None
        self._next += 1
        return Mark(self._next - 1, end=self._next > self._marks)


def read(monkeypatch: pytest.MonkeyPatch, topic: SlowTopic) -> Any:
    monkeypatch.setattr(ledger, "Consumer", topic)
    monkeypatch.setattr(ledger, "read_end_offsets", lambda *_: {0: 5})
    monkeypatch.setattr(ledger.time, "monotonic", lambda: topic.now)
    return ledger.last_entry({}, "ledger", "mine")


def test_a_slow_link_that_goes_on_is_no_standstill(monkeypatch: pytest.MonkeyPatch) -> None:
    last = read(monkeypatch, SlowTopic(marks=5, until=6))

    assert last is not None
    assert last.batch == 4


def test_a_topic_that_stands_still_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Outage, match="has been open"):
        read(monkeypatch, SlowTopic(marks=5, until=3))
