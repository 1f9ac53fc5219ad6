"""Read the newest records of a topic without Spark."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, KafkaException, TopicPartition

from millstream.connectors.api.values.recent_message import RecentMessage
from millstream.connectors.kafka.client.admin import PATIENCE, create_client, describe_topics
from millstream.diagnostics.failure import NotReady

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millstream.connectors.kafka.client.broker import Broker
    from millstream.connectors.kafka.sink import KafkaSink


def read_latest_rows(sink: KafkaSink, limit: int) -> tuple[list[str], list[list[object]]]:
    """Return column names and the last `limit` records by timestamp, newest first.

    Columns are the fields of JSON values, or else `key` and `value`. Raises `NotReady` if the broker does not respond
    or the topic does not exist.
    """
    topic = sink.topic or ""
    describe_topics(sink, (topic,))
    settings = {**sink.native(), "group.id": "millstream-show", "enable.auto.commit": False}
    settings |= {"isolation.level": "read_committed", "enable.partition.eof": True}
    consumer = create_client(Consumer, settings)
    try:
        messages = _tail(consumer, topic, limit)
    except KafkaException as cause:
        raise NotReady(
            f"topic '{topic}' cannot be read: {cause.args[0].str()}", "see the broker's log"
        ) from cause
    finally:
        consumer.close()
    return _table(sink, messages)


def read_recent_messages(broker: Broker, topics: Sequence[str], limit: int) -> list[RecentMessage]:
    """Return the last records of topics by timestamp, newest first, at most `limit` in total.

    Raises `NotReady` if the broker does not respond or a topic does not exist.
    """
    describe_topics(broker, topics)
    settings = {**broker.native(), "group.id": "millstream-page", "enable.auto.commit": False}
    settings |= {"enable.partition.eof": True, "isolation.level": "read_committed"}
    consumer = create_client(Consumer, settings)
    try:
        messages = [message for topic in topics for message in _tail(consumer, topic, limit)]
    except KafkaException as cause:
        reason = cause.args[0].str()
        raise NotReady(f"{', '.join(topics)} cannot be read: {reason}", "see the broker's log") from cause
    finally:
        consumer.close()
    messages.sort(key=lambda message: (message.timestamp()[1], message.offset()), reverse=True)
    return [
        RecentMessage(
            message.topic(),
            message.partition(),
            message.offset(),
            datetime.fromtimestamp(message.timestamp()[1] / 1000, UTC),
            message.key(),
            message.value(),
        )
        for message in messages[:limit]
    ]


def tail_offsets(broker: Broker, topics: Sequence[str], records: int) -> dict[str, dict[int, int]]:
    """Return the offset in each partition at about this many records, in total, before the end."""
    describe_topics(broker, topics)
    consumer = create_client(Consumer, {**broker.native(), "group.id": "millstream-show"})
    try:
        partitions = [
            TopicPartition(topic, number)
            for topic in topics
            for number in consumer.list_topics(topic, timeout=PATIENCE).topics[topic].partitions
        ]
        offsets: dict[str, dict[int, int]] = {topic: {} for topic in topics}
        for partition in partitions:
            low, high = consumer.get_watermark_offsets(partition, timeout=PATIENCE)
            offsets[partition.topic][partition.partition] = max(low, high - records // len(partitions))
    except KafkaException as cause:
        reason = cause.args[0].str()
        raise NotReady(f"{', '.join(topics)} cannot be read: {reason}", "see the broker's log") from cause
    else:
        return offsets
    finally:
        consumer.close()


def _tail(consumer: Consumer, topic: str, limit: int) -> list[Any]:
    """Read the last messages of each partition, and return the last of all by timestamp."""
    partitions = []
    for number in consumer.list_topics(topic, timeout=PATIENCE).topics[topic].partitions:
        low, high = consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=PATIENCE)
        if high > low:
            partitions.append(TopicPartition(topic, number, max(low, high - limit)))
    consumer.assign(partitions)
    unfinished = {partition.partition for partition in partitions}
    messages: list[Any] = []
    deadline = time.monotonic() + PATIENCE
    while unfinished and time.monotonic() < deadline:
        for message in consumer.consume(limit, timeout=0.2):
            # The only error reported here is the end of a partition.
            if message.error() is not None:
                unfinished.discard(message.partition())
            else:
                messages.append(message)
    messages.sort(key=lambda message: (message.timestamp()[1], message.offset()), reverse=True)
    return messages[:limit]


def _table(sink: KafkaSink, messages: list[Any]) -> tuple[list[str], list[list[object]]]:
    values = [_object(message.value()) if sink.format == "json" else None for message in messages]
    if values and all(value is not None for value in values):
        names = list(dict.fromkeys(name for value in values if value is not None for name in value))
        return names, [[(value or {}).get(name) for name in names] for value in values]
    rows: list[list[object]] = [[_text(message.key()), _text(message.value())] for message in messages]
    return ["key", "value"], rows


def _object(value: bytes | None) -> dict[str, object] | None:
    try:
        parsed = json.loads(value or b"")
    except ValueError:
        return None
    return parsed if isinstance(parsed, dict) else None


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode(errors="replace")
