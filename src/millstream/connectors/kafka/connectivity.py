"""Check topics with the broker for `check --connect`: do they match the spec and the checkpoint?"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka import admin as kafka
from confluent_kafka.admin import AdminClient

from millstream.connectors.api.values.connectivity import CheckpointedSource, ConnectivityFinding
from millstream.connectors.kafka.client.admin import PATIENCE, create_client, describe_topics
from millstream.diagnostics.failure import Unreachable
from millstream.diagnostics.finding import Severity

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from millstream.connectors.kafka.client.broker import Broker
    from millstream.connectors.kafka.sink import KafkaSink
    from millstream.connectors.kafka.source import KafkaSource

# The stubs of confluent_kafka do not declare every name.
_admin: Any = kafka

# A fault on Friday evening is repaired on Monday.
LEAST_DAYS = 3
# At one kilobyte each, 5 GB in one batch.
MOST_RECORDS = 5_000_000
_DAY = 86_400_000
# Default of `max.request.size` in the Java producer, in bytes.
_REQUEST = 1_048_576


@dataclass(frozen=True)
class PartitionOffsets:
    """Offsets of a partition: its oldest record, and the position after its newest record."""

    low: int
    high: int


def check_source(
    source: KafkaSource, *, static: bool, checkpoints: Sequence[CheckpointedSource], fresh: Sequence[str]
) -> Iterator[ConnectivityFinding]:
    """Check the topics of a source. `fresh` contains the queries without a checkpoint."""
    probed = describe_topics(
        source, source.topics, pattern=source.subscribe_pattern, partitions=source.assign
    )
    counts = {
        key.partition(".")[2]: int(value) for key, value in probed.items() if key.startswith("partitions.")
    }
    client = connect_admin(source)
    settings = _settings(client, counts)
    parts = {topic: set((source.assign or {}).get(topic, range(count))) for topic, count in counts.items()}
    ends = read_partition_ends(client, parts)
    if not static:
        for topic, config in settings.items():
            yield from _check_retention(topic, config)
        if source.starting_timestamp is None:
            yield from _check_first_batch(source, ends, fresh)
    yield from _check_starting_offsets(source, ends)
    for query in checkpoints:
        yield from _check_checkpoint(query, probed, ends)


def check_sink(sink: KafkaSink) -> Iterator[ConnectivityFinding]:
    """Find settings of a sink's topic that make the broker reject records."""
    topics = (sink.topic,) if sink.topic else ()
    counts = {key.partition(".")[2]: 0 for key in describe_topics(sink, topics)}
    for topic, config in _settings(
        connect_admin(sink), {name: 0 for name in topics if name in counts}
    ).items():
        if "compact" in config.get("cleanup.policy", "") and not sink.key:
            yield ConnectivityFinding(
                "MS573",
                f"topic '{topic}' is compacted, and the sink writes records without a key",
                "topic",
                "the broker rejects a record without a key in a compacted topic, so the first batch fails",
                "add key with the columns that identify a row",
            )
        size_option = next((key for key in sink.options if key.lower() == "kafka.max.request.size"), None)
        max_request, max_message = (
            int(sink.options[size_option] if size_option else _REQUEST),
            int(config.get("max.message.bytes", _REQUEST)),
        )
        if size_option and max_request > max_message:
            yield ConnectivityFinding(
                "MS572",
                f"records may be up to {max_request:,} bytes, but topic '{topic}' accepts {max_message:,}",
                "options",
                f"the query fails at the first record above {max_message:,} bytes, and again after each restart",
                f"raise max.message.bytes of the topic, or lower {size_option}",
                Severity.WARNING,
                size_option,
            )


def _check_retention(topic: str, config: Mapping[str, str]) -> Iterator[ConnectivityFinding]:
    """Check the topic's retention and compaction."""
    policy = config.get("cleanup.policy", "delete")
    if "compact" in policy:
        yield ConnectivityFinding(
            "MS562",
            f"topic '{topic}' is compacted: the broker removes a record once a later one has the same key",
            "subscribe",
            "a replayed batch may lack records that it contained before, and a query that starts later never "
            "reads them",
            "read the topic as a static table of the latest record of each key, or use a topic with "
            "cleanup.policy=delete",
            Severity.WARNING,
        )
    retention = int(config.get("retention.ms", "-1"))
    if "delete" in policy and 0 <= retention < LEAST_DAYS * _DAY:
        yield ConnectivityFinding(
            "MS563",
            f"topic '{topic}' keeps records for {_format_duration(retention)}: "
            "a query that is down for longer loses records",
            "subscribe",
            f"an outage over a weekend lasts about {LEAST_DAYS} days",
            f"raise retention.ms of the topic to {LEAST_DAYS * _DAY} or more",
            Severity.WARNING,
        )


def _check_first_batch(
    source: KafkaSource, ends: Mapping[str, Mapping[int, PartitionOffsets]], fresh: Sequence[str]
) -> Iterator[ConnectivityFinding]:
    """Check whether the first batch would read a large topic whole."""
    if not fresh or source.has_batch_limit() or source.starting_offsets == "latest":
        return
    start: Any = source.starting_offsets if isinstance(source.starting_offsets, dict) else {}
    waiting = sum(
        end.high - max(end.low, start.get(topic, {}).get(part, end.low))
        for topic, parts in ends.items()
        for part, end in parts.items()
        if start.get(topic, {}).get(part) != -1
    )
    if waiting > MOST_RECORDS:
        yield ConnectivityFinding(
            "MS565",
            f"the first batch of query '{fresh[0]}' would contain {waiting:,} records",
            "subscribe",
            "without a limit, a batch reads everything that is available: it may take hours until it is "
            "committed, and memory may run out",
            "add max_offsets_per_trigger",
            Severity.WARNING,
        )


def _check_starting_offsets(
    source: KafkaSource, ends: Mapping[str, Mapping[int, PartitionOffsets]]
) -> Iterator[ConnectivityFinding]:
    """Find offsets in the spec that a partition does not have."""
    if not isinstance(source.starting_offsets, dict):
        return
    for topic, parts in source.starting_offsets.items():
        for part, offset in parts.items():
            end = ends.get(topic, {}).get(part)
            if end is None:
                message = (
                    f"topic '{topic}' has no partition {part}, but starting_offsets contains {offset} for it"
                )
            elif offset >= 0 and not end.low <= offset <= end.high:
                message = (
                    f"partition {part} of topic '{topic}' has offsets {end.low} to {end.high}, but "
                    f"starting_offsets contains {offset}"
                )
            else:
                continue
            yield ConnectivityFinding(
                "MS566",
                message,
                "starting_offsets",
                "Spark ends a query with an error if it starts at an offset that does not exist",
                "use an offset that exists, -2 for the oldest or -1 for the newest",
            )


def _check_checkpoint(
    checkpoints: CheckpointedSource,
    probed: Mapping[str, str],
    ends: Mapping[str, Mapping[int, PartitionOffsets]],
) -> Iterator[ConnectivityFinding]:
    """Check that topics are those of the checkpoint and still have the records it has not read."""
    recreated = {
        key.partition(".")[2]
        for key, recorded_id in checkpoints.identity.items()
        if key.startswith("topic.") and probed.get(key, recorded_id) != recorded_id
    }
    for topic in sorted(recreated):
        yield ConnectivityFinding(
            "MS564",
            f"topic '{topic}' was deleted and recreated since query '{checkpoints.query}' started",
            "subscribe",
            "the checkpoint has offsets of the old topic, and records of the new topic before these offsets are "
            "never read",
            f"start the query with an empty checkpoint: move the folder of '{checkpoints.query}' away",
        )
    offsets: dict[str, dict[str, int]] = json.loads(checkpoints.offsets) if checkpoints.offsets else {}
    for topic, parts in offsets.items():
        for part, offset in parts.items() if topic in ends and topic not in recreated else ():
            end = ends[topic].get(int(part))
            if end is None:
                message = (
                    f"topic '{topic}' has no partition {part}, which query '{checkpoints.query}' has read"
                )
            elif offset < end.low:
                message = (
                    f"query '{checkpoints.query}' resumes at offset {offset} of partition {part} of topic "
                    f"'{topic}', but the oldest record is {end.low}: {end.low - offset:,} are gone"
                )
            elif offset > end.high:
                message = (
                    f"query '{checkpoints.query}' resumes at offset {offset} of partition {part} of topic "
                    f"'{topic}', which ends at {end.high}"
                )
            else:
                continue
            yield ConnectivityFinding(
                "MS566",
                message,
                "subscribe",
                "Spark ends a query with an error if its next records do not exist",
                f"find out which records are lost; then start '{checkpoints.query}' with an empty checkpoint",
            )


def connect_admin(broker: Broker) -> AdminClient:
    """Create an admin client with a timeout short enough for interactive use."""
    return create_client(AdminClient, {**broker.native(), "socket.timeout.ms": int(PATIENCE * 1000)})


def _settings(client: AdminClient, topics: Mapping[str, int]) -> dict[str, dict[str, str]]:
    """Return the settings of topics, without those of topics that it may not describe."""
    if not topics:
        return {}
    futures = client.describe_configs(
        [_admin.ConfigResource("topic", name) for name in topics], request_timeout=PATIENCE
    )
    configs = {}
    for resource, future in futures.items():
        try:
            entries = future.result(timeout=PATIENCE)
        except (KafkaException, TimeoutError):
            # Describing a topic needs a permission that reading does not.
            continue
        configs[resource.name] = {name: str(entry.value) for name, entry in entries.items()}
    return configs


def list_partitions(client: AdminClient, needed: Collection[str]) -> dict[str, set[int]]:
    """Return the partitions of each topic. Raises `Unreachable` if the broker cannot describe one that is needed."""
    try:
        topics = client.list_topics(timeout=PATIENCE).topics
    except KafkaException as cause:
        raise Unreachable("the Kafka broker did not list its topics", "see the broker's log") from cause
    for name, topic in topics.items():
        if topic.error is not None and name in needed:
            raise Unreachable(
                f"the Kafka broker cannot describe topic '{name}': {topic.error.str()}",
                "see the broker's log",
            )
    return {name: set(topic.partitions) for name, topic in topics.items() if topic.error is None}


def read_partition_ends(
    client: AdminClient, parts: Mapping[str, set[int]]
) -> dict[str, dict[int, PartitionOffsets]]:
    """Return the first and end offsets of partitions. Raises `Unreachable` if the broker does not return them."""
    partitions = [(topic, part) for topic, numbers in parts.items() for part in sorted(numbers)]
    offsets: list[dict[tuple[str, int], int]] = []
    for spec in (_admin.OffsetSpec.earliest(), _admin.OffsetSpec.latest()):
        futures = client.list_offsets(
            {TopicPartition(topic, part): spec for topic, part in partitions}, request_timeout=PATIENCE
        )
        try:
            offsets.append(
                {
                    (partition.topic, partition.partition): future.result(PATIENCE).offset
                    for partition, future in futures.items()
                }
            )
        except (KafkaException, TimeoutError) as cause:
            raise Unreachable(
                "the Kafka broker did not return the offsets of its topics", "see the broker's log"
            ) from cause
    low, high = offsets
    ends: dict[str, dict[int, PartitionOffsets]] = {topic: {} for topic in parts}
    for topic, part in partitions:
        ends[topic][part] = PartitionOffsets(low[topic, part], high[topic, part])
    return ends


def _format_duration(milliseconds: int) -> str:
    """Format a duration in its largest unit: `6 hours`."""
    for unit, size in (("day", _DAY), ("hour", 3_600_000), ("minute", 60_000), ("second", 1000)):
        if milliseconds >= size:
            number = milliseconds / size
            return (
                f"{number:g} {unit}{'' if number == 1 else 's'}"
                if number == int(number)
                else f"{number:.1f} {unit}s"
            )
    return f"{milliseconds} milliseconds"
