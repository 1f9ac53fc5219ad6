"""The newest records of a topic, without Spark."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, KafkaException, TopicPartition

from millstream.connectors.kafka.admin import PATIENCE, SILENT, look
from millstream.connectors.source import Recent
from millstream.diagnostics.failure import NotReady

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millstream.connectors.kafka.broker import Broker
    from millstream.connectors.kafka.sink import KafkaSink


def latest(sink: KafkaSink, limit: int) -> tuple[list[str], list[list[object]]]:
    """Column names and the last `limit` records by their timestamps, newest first.

    Columns are the fields of JSON values, else `key` and `value`; a key that is in no field stands first.
    Raises `NotReady` when the broker does not answer or the topic is missing.
    """
    topic = sink.topic or ""
    look(sink, (topic,))
    settings = {**sink.native(), "group.id": "millstream-show", "enable.auto.commit": False}
    settings |= {"isolation.level": "read_committed", "enable.partition.eof": True}
    consumer = Consumer(settings, logger=SILENT)
    try:
        messages = _tail(consumer, topic, limit)
    except KafkaException as cause:
        raise NotReady(
            f"topic '{topic}' cannot be read: {cause.args[0].str()}", "see the broker's log"
        ) from cause
    finally:
        consumer.close()
    return _table(sink, messages)


def recent(broker: Broker, topics: Sequence[str], limit: int) -> list[Recent]:
    """The last records of topics by their timestamps, newest first, at most `limit` of all.

    Raises `NotReady` when the broker does not answer or a topic is missing.
    """
    look(broker, topics)
    settings = {**broker.native(), "group.id": "millstream-page", "enable.auto.commit": False}
    settings |= {"enable.partition.eof": True, "isolation.level": "read_committed"}
    consumer = Consumer(settings, logger=SILENT)
    try:
        found = [message for topic in topics for message in _tail(consumer, topic, limit)]
    except KafkaException as cause:
        said = cause.args[0].str()
        raise NotReady(f"{', '.join(topics)} cannot be read: {said}", "see the broker's log") from cause
    finally:
        consumer.close()
    found.sort(key=lambda message: (message.timestamp()[1], message.offset()), reverse=True)
    return [
        Recent(
            message.topic(),
            message.partition(),
            message.offset(),
            datetime.fromtimestamp(message.timestamp()[1] / 1000, UTC),
            message.key(),
            message.value(),
        )
        for message in found[:limit]
    ]


def tails(broker: Broker, topics: Sequence[str], records: int) -> dict[str, dict[int, int]]:
    """The offset in each partition from which about that many records of all topics are left to the end."""
    look(broker, topics)
    consumer = Consumer({**broker.native(), "group.id": "millstream-show"}, logger=SILENT)
    try:
        places = [
            TopicPartition(topic, number)
            for topic in topics
            for number in consumer.list_topics(topic, timeout=PATIENCE).topics[topic].partitions
        ]
        found: dict[str, dict[int, int]] = {topic: {} for topic in topics}
        for place in places:
            low, high = consumer.get_watermark_offsets(place, timeout=PATIENCE)
            found[place.topic][place.partition] = max(low, high - records // len(places))
    except KafkaException as cause:
        said = cause.args[0].str()
        raise NotReady(f"{', '.join(topics)} cannot be read: {said}", "see the broker's log") from cause
    else:
        return found
    finally:
        consumer.close()


def _tail(consumer: Consumer, topic: str, limit: int) -> list[Any]:
    """The last messages of each partition, then the last of all by timestamp."""
    places = []
    for number in consumer.list_topics(topic, timeout=PATIENCE).topics[topic].partitions:
        low, high = consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=PATIENCE)
        if high > low:
            places.append(TopicPartition(topic, number, max(low, high - limit)))
    consumer.assign(places)
    open_ = {place.partition for place in places}
    found: list[Any] = []
    until = time.monotonic() + PATIENCE
    while open_ and time.monotonic() < until:
        for message in consumer.consume(limit, timeout=0.2):
            # The only error told here is the end of a partition.
            if message.error() is not None:
                open_.discard(message.partition())
            else:
                found.append(message)
    found.sort(key=lambda message: (message.timestamp()[1], message.offset()), reverse=True)
    return found[:limit]


def _table(sink: KafkaSink, messages: list[Any]) -> tuple[list[str], list[list[object]]]:
    values = [_object(message.value()) if sink.format == "json" else None for message in messages]
    if values and all(value is not None for value in values):
        names = list(dict.fromkeys(name for value in values if value is not None for name in value))
        return names, [[(value or {}).get(name) for name in names] for value in values]
    rows: list[list[object]] = [[_text(message.key()), _text(message.value())] for message in messages]
    return ["key", "value"], rows


def _object(value: bytes | None) -> dict[str, object] | None:
    try:
        read = json.loads(value or b"")
    except ValueError:
        return None
    return read if isinstance(read, dict) else None


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode(errors="replace")
