"""Create, read and purge a topic of dead letters."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka import admin as kafka
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from millstream.connectors.api.dead_letters import DeadLetter, is_selected, take_newest
from millstream.connectors.kafka.client.admin import PATIENCE, create_client
from millstream.diagnostics.failure import InvalidInput, NotReady, Outage, Unreachable

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from millstream.connectors.kafka.client.broker import Broker

# The stubs of confluent_kafka do not declare every name.
_admin: Any = kafka

LETTER = "millstream-letter"
"""Header with the details of a dead letter that its record does not contain, as JSON. The last such header counts."""
# Dead letters stay until they are purged, and may be as large as any record of a source topic.
_SETTINGS = {"cleanup.policy": "delete", "retention.ms": "-1", "max.message.bytes": str(64 * 1024 * 1024)}
# Records per poll, and the longest wait of a poll in seconds.
_CHUNK, _POLL = 1000, 0.5
# Kilobytes that the client fetches ahead; its default is 64 MB for each partition.
_FETCHED = {"queued.max.messages.kbytes": 4096, "queued.min.messages": _CHUNK}
# Number of empty polls after which the broker counts as down: half a minute.
_EMPTY = 60


def ensure_topic(broker: Broker, topic: str) -> None:
    """Create the topic if it is missing. Raises `NotReady` if it cannot be created, or would lose dead letters."""
    admin = create_client(AdminClient, broker.native())
    if _topic_exists(admin, broker, topic):
        _require_retention(admin, topic)
        return
    new_topic = NewTopic(topic, num_partitions=1, replication_factor=-1, config=_SETTINGS)
    try:
        admin.create_topics([new_topic], request_timeout=PATIENCE)[topic].result(PATIENCE)
    except KafkaException as cause:
        if cause.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise NotReady(
                f"topic '{topic}' for dead letters cannot be created: {cause.args[0].str()}",
                "create it with cleanup.policy=delete and retention.ms=-1, or permit its creation",
            ) from cause


def probe(broker: Broker, topic: str) -> None:
    """Raise `Unreachable` if no broker responds, `NotReady` if the topic would lose dead letters. Creates nothing."""
    admin = create_client(AdminClient, broker.native())
    if _topic_exists(admin, broker, topic):
        _require_retention(admin, topic)


def read_dead_letters(broker: Broker, topic: str) -> Iterator[DeadLetter]:
    """Read all dead letters among the committed records, skipping other records. A missing topic has none."""
    return (letter for _, letter in _records(broker, topic) if letter is not None)


def read_latest(broker: Broker, topic: str, limit: int, sources: Sequence[str]) -> list[DeadLetter]:
    """Return the newest dead letters, read from the ends of the partitions.

    Reads further back if other records, transaction markers or dead letters of other sources come after them.
    """
    per_partition = limit
    while True:
        starts, is_complete = _tails(broker, topic, per_partition)
        newest_letters = take_newest(
            (
                letter
                for _, letter in _records(broker, topic, starts)
                if letter is not None and (not sources or letter.source in sources)
            ),
            limit,
        )
        if len(newest_letters) >= limit or is_complete:
            return newest_letters
        per_partition *= 8


def purge(broker: Broker, topic: str, before: datetime | None, source: str | None) -> int:
    """Delete the chosen dead letters at the start of each partition; return how many chosen ones remain.

    A broker deletes records only from the start of a partition, so chosen ones after a record that stays remain.
    Raises `InvalidInput` if no chosen dead letter is at a start.
    """
    matching, remaining = _delete(broker, topic, lambda letter: is_selected(letter, before, source))
    if matching and remaining == matching:
        raise InvalidInput(
            f"records of a topic can be deleted only from its start, and in '{topic}' each of these records is "
            f"behind a record that must stay",
            "use purge with --before or --all, or let the retention of the topic delete them",
        )
    return remaining


def delete_sent(broker: Broker, topic: str, source: str, written: Mapping[str, Collection[datetime]]) -> int:
    """Delete a source's records of topics that these queries wrote at these times; return how many remain."""
    return _delete(
        broker,
        topic,
        lambda letter: (
            letter.source == source
            and letter.topic is not None
            and letter.at in written.get(letter.query, ())
        ),
    )[1]


def _delete(broker: Broker, topic: str, is_chosen: Callable[[DeadLetter], bool]) -> tuple[int, int]:
    """Delete the chosen ones at the start of each partition; return how many were chosen, and how many remain."""
    ends: dict[int, int] = {}
    blocked: set[int] = set()
    matching = remaining = 0
    for (partition, offset), letter in _records(broker, topic):
        if letter is None or not is_chosen(letter):
            blocked.add(partition)
            ends.setdefault(partition, offset)
        else:
            matching += 1
            remaining += partition in blocked
        if partition not in blocked:
            ends[partition] = offset + 1
    if matching == remaining:
        return matching, remaining
    admin = create_client(AdminClient, broker.native())
    futures = admin.delete_records([TopicPartition(topic, number, end) for number, end in ends.items()])
    for future in futures.values():
        try:
            future.result(PATIENCE)
        except KafkaException as cause:
            raise NotReady(
                f"records of topic '{topic}' cannot be deleted: {cause.args[0].str()}",
                "grant Delete on the topic; it must have cleanup.policy=delete",
            ) from cause
    return matching, remaining


def _topic_exists(admin: Any, broker: Broker, topic: str) -> bool:
    try:
        known = admin.list_topics(timeout=PATIENCE).topics.get(topic)
    except KafkaException as cause:
        servers = ",".join(broker.bootstrap_servers)
        raise Unreachable(
            f"no Kafka broker responds at {servers}",
            "start the stack with 'millstream up', or correct bootstrap_servers",
        ) from cause
    return known is not None and known.error is None


def _require_retention(admin: Any, topic: str) -> None:
    """Raise `NotReady` if the topic is compacted. Passes if its settings may not be read."""
    futures = admin.describe_configs([_admin.ConfigResource("topic", topic)], request_timeout=PATIENCE)
    for future in futures.values():
        try:
            policy = future.result(PATIENCE)["cleanup.policy"].value
        except KafkaException:
            # Reading settings needs a permission that writing does not.
            continue
        if "compact" in policy:
            raise NotReady(
                f"topic '{topic}' for dead letters is compacted, so it would keep only one of several dead "
                f"letters with the same key",
                "name another topic in dead_letters, or set cleanup.policy=delete on this one",
            )


def _tails(broker: Broker, topic: str, records: int) -> tuple[dict[int, int], bool]:
    """Return the offset in each partition this many records before its end, and whether these are all records."""
    consumer = create_client(Consumer, {**broker.native(), "group.id": "millstream-deadletter"})
    starts: dict[int, int] = {}
    is_complete = True
    try:
        known = consumer.list_topics(topic, timeout=PATIENCE).topics[topic]
        for number in () if known.error is not None else known.partitions:
            low, high = consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=PATIENCE)
            starts[number] = max(low, high - records)
            is_complete = is_complete and starts[number] == low
    except KafkaException as cause:
        raise _read_error(topic, cause) from cause
    finally:
        consumer.close()
    return starts, is_complete


def _records(
    broker: Broker, topic: str, starts: Mapping[int, int] | None = None
) -> Iterator[tuple[tuple[int, int], DeadLetter | None]]:
    """Yield committed records by partition and offset, with their dead letter, up to each partition's current end.

    Reads from the start, or from the offsets of `starts`. The records of a partition come in order.
    """
    settings = {**broker.native(), "group.id": "millstream-deadletter", "enable.auto.commit": False}
    settings |= {"isolation.level": "read_committed", "enable.partition.eof": True, **_FETCHED}
    consumer = create_client(Consumer, settings)
    try:
        known = consumer.list_topics(topic, timeout=PATIENCE).topics[topic]
        if known.error is not None:
            return
        first = starts or dict.fromkeys(known.partitions, OFFSET_BEGINNING)
        consumer.assign([TopicPartition(topic, number, offset) for number, offset in first.items()])
        ended: set[int] = set()
        empty = 0
        while len(ended) < len(first):
            messages = consumer.consume(_CHUNK, timeout=_POLL)
            empty = 0 if messages else empty + 1
            if empty > _EMPTY:
                raise Outage(
                    f"topic '{topic}' cannot be read to its end", "check that the brokers are running"
                )
            for message in messages:
                partition = message.partition() or 0
                if (error := message.error()) is None:
                    # Leave records after the partition's end to the next read.
                    if partition not in ended:
                        yield (partition, message.offset() or 0), _parse_dead_letter(message)
                elif error.name() == "_PARTITION_EOF":
                    ended.add(partition)
                elif not error.retriable():
                    raise KafkaException(error)
    except KafkaException as cause:
        raise _read_error(topic, cause) from cause
    finally:
        consumer.close()


def _read_error(topic: str, cause: KafkaException) -> Outage:
    return Outage(
        f"topic '{topic}' cannot be read: {cause.args[0].str()}", "check that the brokers are running"
    )


def _parse_dead_letter(message: Any) -> DeadLetter | None:
    """Parse the dead letter of a record; None if the record is not a dead letter."""
    headers = message.headers() or []
    index = max((number for number, (key, _) in enumerate(headers) if key == LETTER), default=None)
    if index is None:
        return None
    try:
        details = json.loads(headers[index][1] or b"")
        return DeadLetter(
            **{
                **details,
                "timestamp": _parse_time(details["timestamp"]),
                "at": datetime.fromisoformat(details["at"]),
            },
            key=message.key(),
            value=message.value(),
            headers=[{"key": key, "value": value} for key, value in headers[:index]] or None,
        )
    except (ValueError, KeyError, TypeError):
        # Any writer of the topic may add such a header.
        return None


def _parse_time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
