"""The order of records: what is sent when, and what twice, late or damaged. Knows nothing of Kafka."""

from __future__ import annotations

import random
from enum import StrEnum
from heapq import heappop, heappush
from typing import TYPE_CHECKING, NamedTuple

from millstream.devstack.traffic_maker import Maker, Values

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.devstack.traffic_model import Stream, Traffic


class Kind(StrEnum):
    """What a record is, in truth."""

    GOOD = "good"
    DUPLICATE = "duplicate"
    LATE = "late"
    MALFORMED = "malformed"


class Record(NamedTuple):
    """One record: sent `at` that microsecond since 1970, of an event at the millisecond `event_ms`."""

    at: int
    topic: str
    key: bytes | None
    value: bytes
    kind: Kind
    event_id: str | None
    event_ms: int


class _Due(NamedTuple):
    """An event that follows another, waiting for its time."""

    event_ms: int
    parent: Values
    late: bool


#   sent      12:00:00 ---- a ---- b ---- a' ---- c ----->     a' is a again, within `duplicates.within`
#   happened            11:59:58  11:57:10      11:20:00      b is out of order, c is late
class Flow:
    """All records of a traffic in the order of sending, without end; the same for the same seed and start.

    Takes `start` in microseconds since 1970. Each stream draws from a chance of its own.
    """

    def __init__(self, traffic: Traffic, seed: int, start: int) -> None:
        self.traffic = traffic
        self.start = start
        self.makers: dict[str, Maker] = {}
        self.followers: dict[str, list[Maker]] = {name: [] for name in traffic.streams}
        for name, stream in traffic.streams.items():
            # Not the same chance for another start: identifiers of two runs must not meet.
            chance = random.Random(f"{seed}/{start}/{name}")  # noqa: S311 - nothing secret hangs on it
            self.makers[name] = Maker(name, stream, chance, self.makers)
            if stream.follows:
                self.followers[stream.follows.stream].append(self.makers[name])

    def __iter__(self) -> Iterator[Record]:
        queue: list[tuple[int, int, Maker, _Due | Record | None]] = []
        number = 0
        for maker in self.makers.values():
            if maker.stream.rate:
                heappush(queue, (self.start, number, maker, None))
                number += 1
        while queue:
            at, _, maker, waiting = heappop(queue)
            if isinstance(waiting, Record):
                yield waiting
                continue
            stream, chance = maker.stream, maker.chance
            due = waiting
            if due is None:
                number += 1
                heappush(queue, (at + self._gap(stream, chance, at), number, maker, None))
                due = _arrival(stream, chance, at)
            values = maker.values(due.event_ms, due.parent)
            record = _record(maker, values, at, due, self.traffic.topic(maker.name))
            yield record
            twice = stream.duplicates
            if twice and record.kind is Kind.GOOD and chance.random() < twice.share:
                number += 1
                again = at + 1 + int(chance.random() * twice.within.micros)
                heappush(queue, (again, number, maker, record._replace(at=again, kind=Kind.DUPLICATE)))
            for follower in self.followers[maker.name]:
                follows = follower.stream.follows
                if follows and follower.chance.random() < follows.share:
                    least, most = follows.after[0].micros, follows.after[1].micros
                    wait = least + int(follower.chance.random() * (most - least))
                    number += 1
                    then = _Due(due.event_ms + wait // 1000, values, due.late)
                    heappush(queue, (at + wait, number, follower, then))

    def _gap(self, stream: Stream, chance: random.Random, at: int) -> int:
        """Microseconds to the stream's next event."""
        rate = stream.rate or 1.0
        bursts = stream.bursts
        if bursts and (at - self.start) % bursts.every.micros < bursts.for_.micros:
            rate *= bursts.times
        return max(1, int((0.5 + chance.random()) * 1_000_000 / rate))


def _arrival(stream: Stream, chance: random.Random, at: int) -> _Due:
    """When an event that is sent at this time happened."""
    late = stream.late
    if late and chance.random() < late.share:
        least, most = late.by[0].micros, late.by[1].micros
        return _Due((at - least - int(chance.random() * (most - least))) // 1000, [], late=True)
    if stream.disorder:
        # The cube makes most delays short and a few as long as they may be.
        return _Due((at - int(chance.random() ** 3 * stream.disorder.micros)) // 1000, [], late=False)
    return _Due(at // 1000, [], late=False)


def _record(maker: Maker, values: Values, at: int, due: _Due, topic: str) -> Record:
    malformed = maker.stream.malformed
    key = None if maker.key is None else values[maker.key].encode()
    event_id = None if maker.id is None else values[maker.id]
    if malformed and maker.chance.random() < malformed.share:
        damage = malformed.kinds[int(maker.chance.random() * len(malformed.kinds))]
        value = maker.damaged(values, damage)
        return Record(at, topic, key, value, Kind.MALFORMED, event_id, due.event_ms)
    kind = Kind.LATE if due.late else Kind.GOOD
    return Record(at, topic, key, maker.encoded(values), kind, event_id, due.event_ms)
