"""Send generated events to a broker, paced or at full speed, and write a journal of the true kind of each."""

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

from confluent_kafka import KafkaError, KafkaException

from millstream.devstack.servers.topics import partition_counts
from millstream.devstack.traffic.flow import RecordKind, TrafficFlow, TrafficRecord
from millstream.devstack.traffic.lasting_producer import LastingProducer
from millstream.devstack.traffic.values import format_iso_time
from millstream.diagnostics.failure import NotReady
from millstream.process.signal_safe_event import SignalSafeEvent

if TYPE_CHECKING:
    from pathlib import Path

    from millstream.devstack.traffic.model import Traffic

# Longest delay until a stop takes effect, in seconds.
_POLL_SECONDS = 0.05
# Shortest wait for the next record, in seconds. At a high rate, the records that are due in it are sent together.
_PACE_SECONDS = 0.01
# Delivery reports are collected after this many records, rarely enough to be cheap.
_POLL_RECORDS = 500
_FLUSH_SECONDS = 120

Progress = Callable[[str], None]


@dataclass(frozen=True)
class SendPlan:
    """A plan: send `rows` records at full speed, or paced records for `seconds` or without end.

    `speed` is the number of seconds of event time per second of the clock. `start` is the first event time
    in microseconds since 1970.
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
    ) -> SendPlan:
        """Create a plan; seed and start default to those of the traffic.

        Without any start, paced events begin at the current time, and those of `rows` end at about the current time.
        """
        start_time = start or traffic.start
        if start_time is None:
            duration = rows / sum(traffic.rates().values()) if rows else 0.0
            start_time = datetime.fromtimestamp(int(time.time() - duration), UTC)
        micros = int(start_time.timestamp()) * 1_000_000 + start_time.microsecond
        return cls(traffic.seed if seed is None else seed, micros, rows, seconds, speed)


@dataclass
class TopicCounts:
    """Counts of the records sent to one topic."""

    good: int = 0
    duplicate: int = 0
    late: int = 0
    malformed: int = 0

    @property
    def total(self) -> int:
        """The total number of records."""
        return self.good + self.duplicate + self.late + self.malformed


@dataclass
class Summary:
    """The counts of sent records by topic, the seed and start, and the duration in seconds."""

    seed: int
    start: str
    topics: dict[str, TopicCounts] = field(default_factory=dict)
    seconds: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """Return the output of `traffic --json`."""
        topics = [
            {
                "topic": name,
                "sent": counts.total,
                "good": counts.good,
                "duplicates": counts.duplicate,
                "late": counts.late,
                "malformed": counts.malformed,
            }
            for name, counts in self.topics.items()
        ]
        return {"seed": self.seed, "start": self.start, "seconds": round(self.seconds, 3), "topics": topics}


class Sender:
    """Sends one plan to one broker. `journal` receives a line of JSON for each delivered record."""

    def __init__(self, traffic: Traffic, plan: SendPlan, kafka: str, journal: IO[str] | None = None) -> None:
        self.traffic = traffic
        self.plan = plan
        self.kafka = kafka
        self.journal = journal
        self.last_error: KafkaError | None = None
        self.failed_count = 0
        names = dict.fromkeys(traffic.topic(name) for name in traffic.streams)
        self.summary = Summary(
            plan.seed, format_iso_time(plan.start // 1000), {name: TopicCounts() for name in names}
        )

    def send(self, stop: SignalSafeEvent, progress: Progress | None = None) -> Summary:
        """Send until the plan is done or `stop` is set, wait for the broker, and return the summary.

        Raises NotReady if the broker does not answer, a topic is missing, or records were lost.
        """
        sizes = self._partition_counts()
        producer = LastingProducer(self.kafka)
        started = time.monotonic()
        next_partition = dict.fromkeys(sizes, 0)
        counts = self.summary.topics
        for number, record in enumerate(self._due(stop, producer, started)):
            report = (
                functools.partial(self._write_journal, record.kind, record.event_id, record.event_ms)
                if self.journal
                else self._record_delivery
            )
            partition = -1 if record.key is not None else next_partition[record.topic] % sizes[record.topic]
            if not _produce(producer, stop, record, report, partition):
                break
            next_partition[record.topic] += 1
            topic = counts[record.topic]
            setattr(topic, record.kind.value, getattr(topic, record.kind.value) + 1)
            if number % _POLL_RECORDS == 0:
                producer.poll(0)
                if progress and number and number % (_POLL_RECORDS * 20) == 0:
                    progress(f"sending: {number:,} records")
        unsent = producer.flush(_FLUSH_SECONDS)
        self.summary.seconds = time.monotonic() - started
        if unsent or self.failed_count:
            reason = self.last_error.str() if self.last_error else "the broker stopped answering"
            raise NotReady(
                f"{unsent + self.failed_count} records did not reach the broker at {self.kafka}: {reason}",
                "check the broker: millstream ps, millstream logs kafka",
            )
        return self.summary

    def _partition_counts(self) -> dict[str, int]:
        """Return the number of partitions of each topic that is written."""
        existing = partition_counts(self.kafka)
        missing = [name for name in self.summary.topics if name not in existing]
        if missing:
            names = ", ".join(f"'{name}'" for name in missing)
            raise NotReady(
                f"the broker at {self.kafka} has no topic {names}",
                "'millstream up' creates the topics that the spec and the traffic name",
            )
        return {name: existing[name] for name in self.summary.topics}

    def _due(
        self, stop: SignalSafeEvent, producer: LastingProducer, started: float
    ) -> Iterator[TrafficRecord]:
        """Yield the plan's records, each not before its time."""
        plan = self.plan
        flow = iter(TrafficFlow(self.traffic, plan.seed, plan.start))
        if plan.rows is not None:
            yield from itertools.takewhile(lambda _: not stop.is_set(), itertools.islice(flow, plan.rows))
            return
        for record in flow:
            due = (record.at - plan.start) / 1_000_000 / plan.speed
            if plan.seconds is not None and due >= plan.seconds:
                # The last record is sent before the end, so wait for the rest of the requested duration.
                while not stop.is_set() and time.monotonic() - started < plan.seconds:
                    producer.poll(0)
                    stop.wait(_POLL_SECONDS)
                return
            while (wait := due - (time.monotonic() - started)) > 0 and not stop.is_set():
                producer.poll(0)
                stop.wait(min(max(wait, _PACE_SECONDS), _POLL_SECONDS))
            if stop.is_set():
                return
            yield record

    def _record_delivery(self, error: KafkaError | None, message: Any) -> None:  # noqa: ARG002 - a report's signature
        if error is not None:
            self.last_error, self.failed_count = error, self.failed_count + 1

    def _write_journal(
        self, kind: RecordKind, event_id: str | None, event_ms: int, error: KafkaError | None, message: Any
    ) -> None:
        if error is not None or self.journal is None:
            self._record_delivery(error, message)
            return
        line = {
            "topic": message.topic(),
            "partition": message.partition(),
            "offset": message.offset(),
            "kind": kind.value,
            "event_id": event_id,
            "event_time": format_iso_time(event_ms),
        }
        self.journal.write(json.dumps(line) + "\n")


class TrafficRun:
    """Traffic sent by a thread of this process until `stop`."""

    def __init__(self, traffic: Traffic, plan: SendPlan, kafka: str, journal: Path | None = None) -> None:
        self._stop = SignalSafeEvent()
        self._error: BaseException | None = None
        self._journal = journal
        self._sender = Sender(traffic, plan, kafka)
        self._thread = threading.Thread(target=self._work, name="traffic", daemon=True)
        self._thread.start()

    @property
    def summary(self) -> Summary:
        """The counts of records sent so far."""
        return self._sender.summary

    @property
    def is_sending(self) -> bool:
        """Whether the thread is still running."""
        return self._thread.is_alive()

    def stop(self) -> Summary:
        """Stop sending, wait for the broker, and return the summary. Raises the error of the thread."""
        self._stop.set()
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self.summary

    def _work(self) -> None:
        try:
            send_traffic(self._sender, self._stop, self._journal)
        except (NotReady, KafkaException, OSError) as error:
            self._error = error  # raised in stop(), where the caller can handle it


def send_traffic(
    sender: Sender, stop: SignalSafeEvent, journal: Path | None = None, progress: Progress | None = None
) -> Summary:
    """Send, with a journal in a file if one is given. Raises NotReady if the journal cannot be written."""
    if journal is None:
        return sender.send(stop, progress)
    try:
        stream = journal.open("w", encoding="utf-8")
    except OSError as error:
        raise NotReady(
            f"the journal {journal} cannot be written: {error.strerror}", "pass another file with --journal"
        ) from error
    with stream:
        sender.journal = stream
        return sender.send(stop, progress)


def _produce(
    producer: LastingProducer,
    stop: SignalSafeEvent,
    record: TrafficRecord,
    report: Callable[[KafkaError | None, Any], None],
    partition: int,
) -> bool:
    """Pass a record to the producer, waiting while its queue is full; return False if stopped before."""
    while True:
        try:
            producer.produce(record.topic, record.value, record.key, partition, report)
        except BufferError:
            if stop.is_set():
                return False
            producer.poll(0.1)
        else:
            return True
