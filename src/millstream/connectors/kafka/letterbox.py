"""A topic of dead letters: made, read and emptied."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka import admin as kafka
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from millstream.connectors.kafka.admin import PATIENCE, SILENT
from millstream.connectors.letters import Letter, chosen
from millstream.diagnostics.failure import NotReady, Outage, Silent, WrongUse

if TYPE_CHECKING:
    from millstream.connectors.kafka.broker import Broker

# Its stubs do not name all that it has.
_asked: Any = kafka

LETTER = "millstream-letter"
"""The header that tells all of a letter that is not in the record itself, as JSON. Of several the last counts."""
# Letters stay until they are purged, and may be as large as any record of a topic that was read.
_SETTINGS = {"cleanup.policy": "delete", "retention.ms": "-1", "max.message.bytes": str(64 * 1024 * 1024)}
# Records are handed over in so many at once; a poll that gives nothing ends after so many seconds.
_CHUNK, _POLL = 1000, 0.5
# Polls without a record before the broker counts as away: half a minute.
_EMPTY = 60


def ensure(broker: Broker, topic: str) -> None:
    """Make the topic if it is missing. Raises `NotReady` where that is not allowed, or it would forget letters."""
    admin = AdminClient(dict(broker.native()), logger=SILENT)
    if _there(admin, broker, topic):
        _lasting(admin, topic)
        return
    made = NewTopic(topic, num_partitions=1, replication_factor=-1, config=_SETTINGS)
    try:
        admin.create_topics([made], request_timeout=PATIENCE)[topic].result(PATIENCE)
    except KafkaException as cause:
        if cause.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise NotReady(
                f"topic '{topic}' for dead letters cannot be made: {cause.args[0].str()}",
                "create it with cleanup.policy=delete and retention.ms=-1, or allow it",
            ) from cause


def probe(broker: Broker, topic: str) -> None:
    """Raises `Silent` when no broker answers, `NotReady` when the topic would forget letters. Makes nothing."""
    admin = AdminClient(dict(broker.native()), logger=SILENT)
    if _there(admin, broker, topic):
        _lasting(admin, topic)


def kept(broker: Broker, topic: str) -> list[Letter]:
    """Every letter among the committed records; records of others are passed over. None before it is made."""
    return [letter for _, letter in _read(broker, topic)[0] if letter is not None]


def purge(broker: Broker, topic: str, before: datetime | None, source: str | None) -> int:
    """Delete the chosen letters at the beginning of each partition; gives how many chosen ones stand behind others.

    A broker deletes from the beginning of a partition and nowhere else. Raises `WrongUse` when nothing chosen
    stands at a beginning.
    """
    records, ends = _read(broker, topic)
    until = dict(ends)
    for place, letter in records:
        if letter is None or not chosen(letter, before, source):
            until[place[0]] = min(until[place[0]], place[1])
    named = [place for place, letter in records if letter and chosen(letter, before, source)]
    stay = sum(offset >= until[partition] for partition, offset in named)
    if named and stay == len(named):
        raise WrongUse(
            f"a topic is deleted from its beginning only, and in '{topic}' each of these records stands behind "
            "one that is to stay",
            "purge --before a time, or --all; or let the topic's retention delete them",
        )
    if not named:
        return 0
    admin = AdminClient(dict(broker.native()), logger=SILENT)
    asked = admin.delete_records([TopicPartition(topic, number, end) for number, end in until.items()])
    for done in asked.values():
        try:
            done.result(PATIENCE)
        except KafkaException as cause:
            raise NotReady(
                f"records of topic '{topic}' cannot be deleted: {cause.args[0].str()}",
                "grant Delete on the topic; it must have cleanup.policy=delete",
            ) from cause
    return stay


def _there(admin: Any, broker: Broker, topic: str) -> bool:
    try:
        known = admin.list_topics(timeout=PATIENCE).topics.get(topic)
    except KafkaException as cause:
        servers = ",".join(broker.bootstrap_servers)
        raise Silent(
            f"no Kafka broker answers at {servers}",
            "start the stack with 'millstream up', or correct bootstrap_servers",
        ) from cause
    return known is not None and known.error is None


def _lasting(admin: Any, topic: str) -> None:
    """Raises `NotReady` for a topic that keeps one record a key. Passes where its settings may not be read."""
    asked = admin.describe_configs([_asked.ConfigResource("topic", topic)], request_timeout=PATIENCE)
    for answer in asked.values():
        try:
            policy = answer.result(PATIENCE)["cleanup.policy"].value
        except KafkaException:
            # Reading settings needs a right that writing does not.
            continue
        if "compact" in policy:
            raise NotReady(
                f"topic '{topic}' is compacted: of dead letters with the same key it would keep one",
                "name another topic in dead_letters, or set cleanup.policy=delete",
            )


def _read(broker: Broker, topic: str) -> tuple[list[tuple[tuple[int, int], Letter | None]], dict[int, int]]:
    """All committed records by partition and offset, with their letters; and where each partition ends."""
    settings = {**broker.native(), "group.id": "millstream-deadletter", "enable.auto.commit": False}
    settings |= {"isolation.level": "read_committed", "enable.partition.eof": True}
    consumer = Consumer(settings, logger=SILENT)
    records: list[tuple[tuple[int, int], Letter | None]] = []
    ends: dict[int, int] = {}
    try:
        known = consumer.list_topics(topic, timeout=PATIENCE).topics[topic]
        if known.error is not None:
            return [], {}
        consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in known.partitions])
        empty = 0
        while len(ends) < len(known.partitions):
            messages = consumer.consume(_CHUNK, timeout=_POLL)
            empty = 0 if messages else empty + 1
            if empty > _EMPTY:
                raise Outage(f"topic '{topic}' cannot be read to its end", "see that the brokers are up")
            for message in messages:
                place = (message.partition() or 0, message.offset() or 0)
                if (error := message.error()) is None:
                    records.append((place, _letter(message)))
                elif error.name() == "_PARTITION_EOF":
                    ends.setdefault(*place)
                elif not error.retriable():
                    raise KafkaException(error)
    except KafkaException as cause:
        said = cause.args[0].str()
        raise Outage(f"topic '{topic}' cannot be read: {said}", "see that the brokers are up") from cause
    finally:
        consumer.close()
    return [one for one in records if one[0][1] < ends[one[0][0]]], ends


def _letter(message: Any) -> Letter | None:
    """The letter that a record is, or None for a record of somebody else."""
    headers = message.headers() or []
    at = max((number for number, (key, _) in enumerate(headers) if key == LETTER), default=None)
    if at is None:
        return None
    try:
        told = json.loads(headers[at][1] or b"")
        return Letter(
            **{**told, "timestamp": _time(told["timestamp"]), "at": datetime.fromisoformat(told["at"])},
            key=message.key(),
            value=message.value(),
            headers=[{"key": key, "value": value} for key, value in headers[:at]] or None,
        )
    except (ValueError, KeyError, TypeError):
        # Whoever may write to the topic may write such a header too.
        return None


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
