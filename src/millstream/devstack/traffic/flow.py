"""Order the records: when each is sent, and which are duplicate, late or damaged. Independent of Kafka."""

from __future__ import annotations

import random
from enum import StrEnum
from heapq import heappop, heappush
from typing import TYPE_CHECKING, NamedTuple

from millstream.devstack.traffic.values import RecordGenerator, Values

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.devstack.traffic.model import Stream, Traffic


class RecordKind(StrEnum):
    """The true kind of a record."""

    GOOD = "good"
    DUPLICATE = "duplicate"
    LATE = "late"
    MALFORMED = "malformed"


class TrafficRecord(NamedTuple):
    """One record: `at` is the send time in microseconds since 1970, `event_ms` the event time in milliseconds."""

    at: int
    topic: str
    key: bytes | None
    value: bytes
    kind: RecordKind
    event_id: str | None
    event_ms: int


class _Due(NamedTuple):
    """An event that follows another, scheduled for its time."""

    event_ms: int
    parent: Values
    is_late: bool


#   sent      12:00:00 ---- a ---- b ---- a' ---- c ----->     a' is a again, within `duplicates.within`
#   happened            11:59:58  11:57:10      11:20:00      b is out of order, c is late
class TrafficFlow:
    """An endless sequence of records in send order; the same for the same seed and start.

    `start` is in microseconds since 1970. Each stream has its own random generator.
    """

    def __init__(self, traffic: Traffic, seed: int, start: int) -> None:
        self.traffic = traffic
        self.start = start
        self.makers: dict[str, RecordGenerator] = {}
        self.followers: dict[str, list[RecordGenerator]] = {name: [] for name in traffic.streams}
        for name, stream in traffic.streams.items():
            # The start is part of the seed, so that identifiers of two runs do not collide.
            chance = random.Random(f"{seed}/{start}/{name}")  # noqa: S311 - not used for secrets
            self.makers[name] = RecordGenerator(name, stream, chance, self.makers)
            if stream.follows:
                self.followers[stream.follows.stream].append(self.makers[name])

    def __iter__(self) -> Iterator[TrafficRecord]:
        queue: list[tuple[int, int, RecordGenerator, _Due | TrafficRecord | None]] = []
        number = 0
        for generator in self.makers.values():
            if generator.stream.rate:
                heappush(queue, (self.start, number, generator, None))
                number += 1
        while queue:
            at, _, generator, scheduled = heappop(queue)
            if isinstance(scheduled, TrafficRecord):
                yield scheduled
                continue
            stream, chance = generator.stream, generator.chance
            due = scheduled
            if due is None:
                number += 1
                heappush(queue, (at + self._gap(stream, chance, at), number, generator, None))
                due = _arrival(stream, chance, at)
            values = generator.values(due.event_ms, due.parent)
            record = _record(generator, values, at, due, self.traffic.topic(generator.name))
            yield record
            duplicates = stream.duplicates
            if duplicates and record.kind is RecordKind.GOOD and chance.random() < duplicates.share:
                number += 1
                repeat_at = at + 1 + int(chance.random() * duplicates.within.micros)
                heappush(
                    queue,
                    (repeat_at, number, generator, record._replace(at=repeat_at, kind=RecordKind.DUPLICATE)),
                )
            for follower in self.followers[generator.name]:
                follows = follower.stream.follows
                if follows and follower.chance.random() < follows.share:
                    least, most = follows.after[0].micros, follows.after[1].micros
                    wait = least + int(follower.chance.random() * (most - least))
                    number += 1
                    next_event = _Due(due.event_ms + wait // 1000, values, due.is_late)
                    heappush(queue, (at + wait, number, follower, next_event))

    def _gap(self, stream: Stream, chance: random.Random, at: int) -> int:
        """Return the microseconds until the stream's next event."""
        rate = stream.rate or 1.0
        bursts = stream.bursts
        if bursts and (at - self.start) % bursts.every.micros < bursts.for_.micros:
            rate *= bursts.times
        return max(1, int((0.5 + chance.random()) * 1_000_000 / rate))


def _arrival(stream: Stream, chance: random.Random, at: int) -> _Due:
    """Choose the event time of an event that is sent at this time."""
    late = stream.late
    if late and chance.random() < late.share:
        least, most = late.by[0].micros, late.by[1].micros
        return _Due((at - least - int(chance.random() * (most - least))) // 1000, [], is_late=True)
    if stream.disorder:
        # The cube makes most delays short and a few close to the maximum.
        return _Due((at - int(chance.random() ** 3 * stream.disorder.micros)) // 1000, [], is_late=False)
    return _Due(at // 1000, [], is_late=False)


def _record(maker: RecordGenerator, values: Values, at: int, due: _Due, topic: str) -> TrafficRecord:
    malformed = maker.stream.malformed
    key = None if maker.key is None else values[maker.key].encode()
    event_id = None if maker.id is None else values[maker.id]
    if malformed and maker.chance.random() < malformed.share:
        damage = malformed.kinds[int(maker.chance.random() * len(malformed.kinds))]
        value = maker.encode_damaged(values, damage)
        return TrafficRecord(at, topic, key, value, RecordKind.MALFORMED, event_id, due.event_ms)
    kind = RecordKind.LATE if due.is_late else RecordKind.GOOD
    return TrafficRecord(at, topic, key, maker.encoded(values), kind, event_id, due.event_ms)
