"""What `check --connect` asks a broker: are topics what the spec, and the checkpoint, take them for?"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka import admin as kafka
from confluent_kafka.admin import AdminClient

from millstream.connectors.asking import Begun, Remark
from millstream.connectors.kafka.admin import PATIENCE, SILENT, look
from millstream.diagnostics.failure import Silent
from millstream.diagnostics.finding import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from millstream.connectors.kafka.broker import Broker
    from millstream.connectors.kafka.sink import KafkaSink
    from millstream.connectors.kafka.source import KafkaSource

# Its stubs do not name all that it has.
_asked: Any = kafka

# A fault of a Friday evening is mended on Monday.
LEAST_DAYS = 3
# At a kilobyte each, these are 5 GB in one batch.
MOST_RECORDS = 5_000_000
_DAY = 86_400_000
# What a producer of Java's client sends at most, unless it is told otherwise (max.request.size).
_REQUEST = 1_048_576


@dataclass(frozen=True)
class Ends:
    """The oldest record that a partition keeps, and the place behind its newest."""

    low: int
    high: int


def of_source(
    source: KafkaSource, *, static: bool, begun: Sequence[Begun], fresh: Sequence[str]
) -> Iterator[Remark]:
    """What a source's topics are not. `fresh` are the queries that have no checkpoint yet."""
    known = look(source, source.topics, pattern=source.subscribe_pattern, partitions=source.assign)
    counts = {
        key.partition(".")[2]: int(value) for key, value in known.items() if key.startswith("partitions.")
    }
    client = connect(source)
    settings = _settings(client, counts)
    parts = {topic: set((source.assign or {}).get(topic, range(count))) for topic, count in counts.items()}
    ends = ends_of(client, parts)
    if not static:
        for topic, said in settings.items():
            yield from _kept(topic, said)
        if source.starting_timestamp is None:
            yield from _first(source, ends, fresh)
    yield from _given(source, ends)
    for one in begun:
        yield from _agrees(one, known, ends)


def of_sink(sink: KafkaSink) -> Iterator[Remark]:
    """What a sink's topic will refuse."""
    topics = (sink.topic,) if sink.topic else ()
    counts = {key.partition(".")[2]: 0 for key in look(sink, topics)}
    for topic, said in _settings(connect(sink), {name: 0 for name in topics if name in counts}).items():
        if "compact" in said.get("cleanup.policy", "") and not sink.key:
            yield Remark(
                "MS573",
                f"topic '{topic}' is compacted, and records without a key are written to it",
                "topic",
                "the broker refuses a record without a key there, so the first batch fails",
                "add key with the columns that tell one row from another",
            )
        size = next((key for key in sink.options if key.lower() == "kafka.max.request.size"), None)
        most, allowed = (
            int(sink.options[size] if size else _REQUEST),
            int(said.get("max.message.bytes", _REQUEST)),
        )
        if size and most > allowed:
            yield Remark(
                "MS572",
                f"records of {most:,} bytes may be sent, and topic '{topic}' takes {allowed:,}",
                "options",
                "a larger record ends the query: its batch fails at each attempt",
                f"raise max.message.bytes of the topic, or lower {size}",
                Severity.WARNING,
                size,
            )


def _kept(topic: str, said: Mapping[str, str]) -> Iterator[Remark]:
    """How long, and whether all, records are kept."""
    policy = said.get("cleanup.policy", "delete")
    if "compact" in policy:
        yield Remark(
            "MS562",
            f"topic '{topic}' is compacted: the broker removes a record once a later one has its key",
            "subscribe",
            "a batch that is read again may lack records it had, and a query that starts late never sees them",
            "read it as what it is, the latest record of each key, or keep a topic with cleanup.policy=delete",
            Severity.WARNING,
        )
    kept = int(said.get("retention.ms", "-1"))
    if "delete" in policy and 0 <= kept < LEAST_DAYS * _DAY:
        yield Remark(
            "MS563",
            f"topic '{topic}' keeps records for {_span(kept)}: a query that stands still for longer loses some",
            "subscribe",
            f"an outage over a weekend lasts about {LEAST_DAYS} days",
            f"raise retention.ms of the topic to {LEAST_DAYS * _DAY} or more",
            Severity.WARNING,
        )


def _first(
    source: KafkaSource, ends: Mapping[str, Mapping[int, Ends]], fresh: Sequence[str]
) -> Iterator[Remark]:
    """Is a query's first batch the whole of a large topic?"""
    if not fresh or source.limited() or source.starting_offsets == "latest":
        return
    start: Any = source.starting_offsets if isinstance(source.starting_offsets, dict) else {}
    waiting = sum(
        end.high - max(end.low, start.get(topic, {}).get(part, end.low))
        for topic, parts in ends.items()
        for part, end in parts.items()
        if start.get(topic, {}).get(part) != -1
    )
    if waiting > MOST_RECORDS:
        yield Remark(
            "MS565",
            f"the first batch of query '{fresh[0]}' would hold {waiting:,} records",
            "subscribe",
            "without a limit a batch takes all there is: for hours nothing is committed, and memory may end first",
            "add max_offsets_per_trigger",
            Severity.WARNING,
        )


def _given(source: KafkaSource, ends: Mapping[str, Mapping[int, Ends]]) -> Iterator[Remark]:
    """Offsets of the spec that no partition has."""
    if not isinstance(source.starting_offsets, dict):
        return
    for topic, parts in source.starting_offsets.items():
        for part, offset in parts.items():
            end = ends.get(topic, {}).get(part)
            if end is None:
                said = f"topic '{topic}' has no partition {part}, for which starting_offsets gives {offset}"
            elif offset >= 0 and not end.low <= offset <= end.high:
                said = (
                    f"partition {part} of topic '{topic}' has offsets {end.low} to {end.high}, "
                    f"and starting_offsets says {offset}"
                )
            else:
                continue
            yield Remark(
                "MS566",
                said,
                "starting_offsets",
                "Spark ends a query that is to start where there is nothing",
                "give an offset that is there, -2 for the oldest or -1 for the newest",
            )


def _agrees(
    begun: Begun, known: Mapping[str, str], ends: Mapping[str, Mapping[int, Ends]]
) -> Iterator[Remark]:
    """Are the topics those that a checkpoint was started with, with what it has not read yet?"""
    anew = {
        key.partition(".")[2]
        for key, told in begun.told.items()
        if key.startswith("topic.") and known.get(key, told) != told
    }
    for topic in sorted(anew):
        yield Remark(
            "MS564",
            f"topic '{topic}' was deleted and made again since query '{begun.query}' began",
            "subscribe",
            "its checkpoint holds offsets of the old topic: records of the new one below them are never read",
            f"start the query with an empty checkpoint: move the folder of '{begun.query}' away",
        )
    offsets: dict[str, dict[str, int]] = json.loads(begun.offsets) if begun.offsets else {}
    for topic, parts in offsets.items():
        for part, offset in parts.items() if topic in ends and topic not in anew else ():
            end = ends[topic].get(int(part))
            if end is None:
                said = f"topic '{topic}' has no partition {part}, which query '{begun.query}' has read"
            elif offset < end.low:
                said = (
                    f"query '{begun.query}' goes on at offset {offset} of partition {part} of topic '{topic}', "
                    f"and the oldest record is {end.low}: {end.low - offset:,} are gone"
                )
            elif offset > end.high:
                said = (
                    f"query '{begun.query}' goes on at offset {offset} of partition {part} of topic '{topic}', "
                    f"which ends at {end.high}"
                )
            else:
                continue
            yield Remark(
                "MS566",
                said,
                "subscribe",
                "Spark ends a query whose next records are not there",
                f"find out what is lost; then start '{begun.query}' with an empty checkpoint",
            )


def connect(broker: Broker) -> AdminClient:
    """A client that asks, in the time a person waits."""
    return AdminClient({**broker.native(), "socket.timeout.ms": int(PATIENCE * 1000)}, logger=SILENT)


def _settings(client: AdminClient, topics: Mapping[str, int]) -> dict[str, dict[str, str]]:
    """The settings of topics; nothing of one that may not be asked about."""
    if not topics:
        return {}
    asked = client.describe_configs(
        [_asked.ConfigResource("topic", name) for name in topics], request_timeout=PATIENCE
    )
    found = {}
    for resource, answer in asked.items():
        try:
            said = answer.result(timeout=PATIENCE)
        except (KafkaException, TimeoutError):
            # Describing needs a right that reading does not.
            continue
        found[resource.name] = {name: str(entry.value) for name, entry in said.items()}
    return found


def ends_of(client: AdminClient, parts: Mapping[str, set[int]]) -> dict[str, dict[int, Ends]]:
    """The ends of partitions. Raises `Silent` when the broker does not tell them."""
    places = [(topic, part) for topic, numbers in parts.items() for part in sorted(numbers)]
    found: list[dict[tuple[str, int], int]] = []
    for spec in (_asked.OffsetSpec.earliest(), _asked.OffsetSpec.latest()):
        asked = client.list_offsets(
            {TopicPartition(topic, part): spec for topic, part in places}, request_timeout=PATIENCE
        )
        try:
            found.append(
                {(at.topic, at.partition): told.result(PATIENCE).offset for at, told in asked.items()}
            )
        except (KafkaException, TimeoutError) as cause:
            raise Silent(
                "the Kafka broker does not tell how far its topics reach", "see the broker's log"
            ) from cause
    low, high = found
    ends: dict[str, dict[int, Ends]] = {topic: {} for topic in parts}
    for topic, part in places:
        ends[topic][part] = Ends(low[topic, part], high[topic, part])
    return ends


def _span(milliseconds: int) -> str:
    """A length of time in its largest unit: `6 hours`."""
    for unit, size in (("day", _DAY), ("hour", 3_600_000), ("minute", 60_000), ("second", 1000)):
        if milliseconds >= size:
            number = milliseconds / size
            return (
                f"{number:g} {unit}{'' if number == 1 else 's'}"
                if number == int(number)
                else f"{number:.1f} {unit}s"
            )
    return f"{milliseconds} milliseconds"
