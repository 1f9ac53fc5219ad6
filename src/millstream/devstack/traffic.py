"""Send made-up events to a broker, paced or as fast as it takes them, and keep a journal of the truth."""

from __future__ import annotations

import functools
import itertools
import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import IO, TYPE_CHECKING, Any

from confluent_kafka import KafkaError, KafkaException, Producer

from millstream.devstack.topics import partitions
from millstream.devstack.traffic_flow import Flow, Kind, Record
from millstream.devstack.traffic_maker import iso
from millstream.diagnostics.failure import NotReady

if TYPE_CHECKING:
    from pathlib import Path

    from millstream.devstack.traffic_model import Traffic

# How long a stop may take to be heard, in seconds.
_NAP = 0.05
# Delivery reports are collected after this many records: rarely enough to be cheap.
_OFTEN = 500
_FLUSH_SECONDS = 120

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Plan:
    """What to send: `rows` records as fast as they go, or paced, for `seconds` or without end.

    `speed` is how many seconds of event time pass in one of the clock. `start` is the event time of the
    beginning in microseconds since 1970.
    """

    seed: int
    start: int
    rows: int | None = None
    seconds: float | None = None
    speed: float = 1.0

    @classmethod
    def of(
        cls,
        traffic: Traffic,
        *,
        seed: int | None = None,
        start: datetime | None = None,
        rows: int | None = None,
        seconds: float | None = None,
        speed: float = 1.0,
    ) -> Plan:
        """The plan with the traffic's own seed and start where none is given.

        Without any start, paced events happen from this moment on, and those of `rows` end about here.
        """
        begin = start or traffic.start
        if begin is None:
            back = rows / sum(traffic.rates().values()) if rows else 0.0
            begin = datetime.fromtimestamp(int(time.time() - back), UTC)
        micros = int(begin.timestamp()) * 1_000_000 + begin.microsecond
        return cls(traffic.seed if seed is None else seed, micros, rows, seconds, speed)


@dataclass
class Counts:
    """What one topic got."""

    good: int = 0
    duplicate: int = 0
    late: int = 0
    malformed: int = 0

    @property
    def sent(self) -> int:
        """All records."""
        return self.good + self.duplicate + self.late + self.malformed


@dataclass
class Summary:
    """What was sent, by topic, with which seed and start, and how many seconds it took."""

    seed: int
    start: str
    topics: dict[str, Counts] = field(default_factory=dict)
    seconds: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """As `traffic --json` prints it."""
        topics = [
            {
                "topic": name,
                "sent": one.sent,
                "good": one.good,
                "duplicates": one.duplicate,
                "late": one.late,
                "malformed": one.malformed,
            }
            for name, one in self.topics.items()
        ]
        return {"seed": self.seed, "start": self.start, "seconds": round(self.seconds, 3), "topics": topics}


class Sender:
    """Sends one plan to one broker. `journal` takes a line of JSON for each record that arrived."""

    def __init__(self, traffic: Traffic, plan: Plan, kafka: str, journal: IO[str] | None = None) -> None:
        self.traffic = traffic
        self.plan = plan
        self.kafka = kafka
        self.journal = journal
        self.refused: KafkaError | None = None
        self.lost = 0
        names = dict.fromkeys(traffic.topic(name) for name in traffic.streams)
        self.summary = Summary(plan.seed, iso(plan.start // 1000), {name: Counts() for name in names})

    def send(self, stop: threading.Event, progress: Progress | None = None) -> Summary:
        """Send until the plan is done or `stop` is set, wait for the broker, and sum up.

        Raises NotReady when the broker does not answer, a topic is missing, or records were lost.
        """
        sizes = self._sizes()
        # Idempotent: a record that is sent again after a lost answer does not stand there twice, and
        # order in a partition holds. What is sent twice on purpose is counted.
        producer = Producer(
            {
                "bootstrap.servers": self.kafka,
                "enable.idempotence": True,
                "linger.ms": 20,
                "compression.type": "lz4",
                "partitioner": "murmur2_random",
                "queue.buffering.max.messages": 500_000,
                "queue.buffering.max.kbytes": 262_144,
                "log_level": 0,
            },
            error_cb=_quiet,
        )
        begun = time.monotonic()
        turns = dict.fromkeys(sizes, 0)
        counts = self.summary.topics
        for number, record in enumerate(self._due(stop, producer, begun)):
            report = (
                functools.partial(self._arrived, record.kind, record.event_id, record.event_ms)
                if self.journal
                else self._settled
            )
            place = -1 if record.key is not None else turns[record.topic] % sizes[record.topic]
            if not _produce(producer, stop, record, report, place):
                break
            turns[record.topic] += 1
            topic = counts[record.topic]
            setattr(topic, record.kind.value, getattr(topic, record.kind.value) + 1)
            if number % _OFTEN == 0:
                producer.poll(0)
                if progress and number and number % (_OFTEN * 20) == 0:
                    progress(f"sending: {number:,} records")
        left = producer.flush(_FLUSH_SECONDS)
        self.summary.seconds = time.monotonic() - begun
        if left or self.lost:
            why = self.refused.str() if self.refused else "the broker stopped answering"
            raise NotReady(
                f"{left + self.lost} records did not reach the broker at {self.kafka}: {why}",
                "look at the broker: millstream ps, millstream logs kafka",
            )
        return self.summary

    def _sizes(self) -> dict[str, int]:
        """Partitions of each topic that is written."""
        there = partitions(self.kafka)
        missing = [name for name in self.summary.topics if name not in there]
        if missing:
            names = ", ".join(f"'{name}'" for name in missing)
            raise NotReady(
                f"the broker at {self.kafka} has no topic {names}",
                "'millstream up' makes the topics that the spec and the traffic name",
            )
        return {name: there[name] for name in self.summary.topics}

    def _due(self, stop: threading.Event, producer: Producer, begun: float) -> Iterator[Record]:
        """The plan's records, each not before its time."""
        plan = self.plan
        flow = iter(Flow(self.traffic, plan.seed, plan.start))
        if plan.rows is not None:
            yield from itertools.takewhile(lambda _: not stop.is_set(), itertools.islice(flow, plan.rows))
            return
        for record in flow:
            due = (record.at - plan.start) / 1_000_000 / plan.speed
            if plan.seconds is not None and due >= plan.seconds:
                # The last record comes before the end; whoever asked for a time gets all of it.
                while not stop.is_set() and time.monotonic() - begun < plan.seconds:
                    producer.poll(0)
                    stop.wait(_NAP)
                return
            while (wait := due - (time.monotonic() - begun)) > 0 and not stop.is_set():
                producer.poll(0)
                stop.wait(min(wait, _NAP))
            if stop.is_set():
                return
            yield record

    def _settled(self, error: KafkaError | None, message: Any) -> None:  # noqa: ARG002 - a report's signature
        if error is not None:
            self.refused, self.lost = error, self.lost + 1

    def _arrived(
        self, kind: Kind, event_id: str | None, event_ms: int, error: KafkaError | None, message: Any
    ) -> None:
        if error is not None or self.journal is None:
            self._settled(error, message)
            return
        line = {
            "topic": message.topic(),
            "partition": message.partition(),
            "offset": message.offset(),
            "kind": kind.value,
            "event_id": event_id,
            "event_time": iso(event_ms),
        }
        self.journal.write(json.dumps(line) + "\n")


class Running:
    """Traffic that is sent by a thread of this process until `stop`."""

    def __init__(self, traffic: Traffic, plan: Plan, kafka: str, journal: Path | None = None) -> None:
        self._stop = threading.Event()
        self._failed: BaseException | None = None
        self._journal = journal
        self._sender = Sender(traffic, plan, kafka)
        self._thread = threading.Thread(target=self._work, name="traffic", daemon=True)
        self._thread.start()

    @property
    def summary(self) -> Summary:
        """What was sent so far."""
        return self._sender.summary

    @property
    def sending(self) -> bool:
        """Is it still at work?"""
        return self._thread.is_alive()

    def stop(self) -> Summary:
        """Send no more, wait until the broker has what was sent, and sum up. Raises what sending raised."""
        self._stop.set()
        self._thread.join()
        if self._failed is not None:
            raise self._failed
        return self.summary

    def _work(self) -> None:
        try:
            send(self._sender, self._stop, self._journal)
        except (NotReady, KafkaException, OSError) as failed:
            self._failed = failed  # raised where somebody listens: in stop()


def send(
    sender: Sender, stop: threading.Event, journal: Path | None = None, progress: Progress | None = None
) -> Summary:
    """Send with a journal in a file, if one is named. Raises NotReady when it cannot be written."""
    if journal is None:
        return sender.send(stop, progress)
    try:
        stream = journal.open("w", encoding="utf-8")
    except OSError as refused:
        raise NotReady(
            f"the journal {journal} cannot be written: {refused.strerror}", "name another file with --journal"
        ) from refused
    with stream:
        sender.journal = stream
        return sender.send(stop, progress)


def _produce(
    producer: Producer,
    stop: threading.Event,
    record: Record,
    report: Callable[[KafkaError | None, Any], None],
    partition: int,
) -> bool:
    """Hand a record over, waiting while the producer's queue is full; False when stopped before."""
    while True:
        try:
            producer.produce(record.topic, record.value, record.key, partition, report)
        except BufferError:
            if stop.is_set():
                return False
            producer.poll(0.1)
        else:
            return True


def _quiet(error: object) -> None:
    """A broker that is away is waited for; what does not arrive in the end is counted."""
