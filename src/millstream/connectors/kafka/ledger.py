"""Batch ledger of Kafka sinks: a compacted topic with the last batch that each writer committed."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka import admin as settings_of
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from millstream.connectors.api.batch_ledger import BatchMetadata, LedgerEntry, parse_metadata
from millstream.connectors.kafka.client.admin import PATIENCE, create_client
from millstream.connectors.kafka.client.options import LEDGER_TOPIC
from millstream.connectors.kafka.client.partition_ends import read_end_offsets
from millstream.diagnostics.failure import NotReady, Outage

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from millstream.connectors.api.writer import SinkIdentity

# The stubs of confluent_kafka do not declare every name.
kafka: Any = settings_of
# Compaction skips the active segment, and each start reads the whole topic. With Kafka's defaults that is a gigabyte,
# or the entries of a week. In bytes and milliseconds.
_SEGMENTS = {"segment.bytes": str(8 * 1024 * 1024), "segment.ms": str(60 * 60 * 1000)}
# One partition, so that a writer's entries have one order and a reader reads all of them.
_SETTINGS = {"cleanup.policy": "compact", "retention.ms": "-1", **_SEGMENTS}
# Limits after which a broker deletes entries of a topic that is not only compacted; -1 is none.
_RETENTION = ("retention.ms", "retention.bytes")
# Another writer's open transaction hides the entries behind it. Its timeout, a minute, ends it if its writer died. In
# seconds since the last entry that was read, because reading many over a slow link is not a stall.
STALLED = 90.0


def ensure_topic(native: Mapping[str, Any], topic: str) -> None:
    """Create the ledger topic if it is missing. Raises `NotReady` if it cannot be created or is not a ledger."""
    admin = create_client(AdminClient, native)
    new_topic = NewTopic(topic, num_partitions=1, replication_factor=-1, config=_SETTINGS)
    try:
        if _accept_existing(admin, topic):
            return
        try:
            admin.create_topics([new_topic], request_timeout=PATIENCE)[topic].result(PATIENCE)
        except KafkaException as cause:
            if cause.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise
            # Another start has created it at the same time, or the broker at a request of another client.
            _accept_existing(admin, topic)
    except KafkaException as cause:
        raise NotReady(
            f"topic '{topic}', the batch ledger of transactional sinks, cannot be created: "
            f"{cause.args[0].str()}",
            f"create it with one partition and cleanup.policy=compact, or permit its creation: {topic}",
        ) from cause


def _accept_existing(admin: Any, topic: str) -> bool:
    """Return whether the topic exists. Raises `NotReady` if it cannot be a ledger."""
    # A request that names a topic makes the broker create it with its own defaults, unless they forbid it.
    existing = admin.list_topics(timeout=PATIENCE).topics.get(topic)
    if existing is None or existing.error is not None:
        return False
    if len(existing.partitions) != 1:
        raise NotReady(
            f"topic '{topic}' has {len(existing.partitions)} partitions, but a ledger must have one",
            "set ledger_topic to another topic; it is created if missing",
        )
    _repair_settings(admin, topic)
    return True


def _repair_settings(admin: Any, topic: str) -> None:
    """Set what a topic created without the settings of a ledger lacks; explicit settings stay unchanged.

    Only a topic with the default name is compacted, because any other may have records of something else. Raises
    `NotReady` if the broker would delete entries. Reading settings needs a permission that writing does not; without
    it nothing is changed.
    """
    resource = kafka.ConfigResource("topic", topic)
    try:
        settings = admin.describe_configs([resource], request_timeout=PATIENCE)[resource].result(PATIENCE)
    except KafkaException:
        return
    # Not every service that speaks Kafka's protocol reports all settings.
    changes = {key: value for key, value in _SEGMENTS.items() if key in settings and settings[key].is_default}
    policy = settings.get("cleanup.policy")
    deleted = policy.value if policy is not None and "delete" in policy.value else ""
    is_expiring = bool(deleted) and any(key in settings and settings[key].value != "-1" for key in _RETENTION)
    if is_expiring and topic == LEDGER_TOPIC and policy.is_default:
        changes["cleanup.policy"] = "compact"
    elif is_expiring:
        raise _expiry_error(topic, deleted)
    if not changes:
        return
    entries = [
        kafka.ConfigEntry(key, value, incremental_operation=kafka.AlterConfigOpType.SET)
        for key, value in changes.items()
    ]
    resource = kafka.ConfigResource("topic", topic, incremental_configs=entries)
    try:
        admin.incremental_alter_configs([resource], request_timeout=PATIENCE)[resource].result(PATIENCE)
    except KafkaException as cause:
        # Changing settings needs another permission.
        if is_expiring:
            raise _expiry_error(topic, deleted) from cause


def _expiry_error(topic: str, policy: str) -> NotReady:
    return NotReady(
        f"topic '{topic}', the batch ledger of transactional sinks, has cleanup.policy={policy}: the broker deletes "
        "the entry of a query that writes nothing for a while, and a batch could then be written twice",
        "set cleanup.policy=compact on the topic; if it has records of something else, set ledger_topic to another "
        "topic, which is created if missing",
    )


def last_entry(native: Mapping[str, Any], topic: str, writer: str) -> LedgerEntry | None:
    """Return the batch that a writer committed last, or None.

    Correct only after the writer's producer has called `init_transactions`, which ends its own open transactions.
    Waits for those of other writers, so that every entry is visible. Raises `Outage` if the broker does not respond,
    or if another writer's transaction stays open for `STALLED` seconds.
    """
    own_entries = [
        _parse_entry(message)
        for message in _read_entries(native, topic, has_all=True)
        if message.key() == writer.encode()
    ]
    return own_entries[-1] if own_entries else None


def visible_entries(
    native: Mapping[str, Any], topic: str, owner: SinkIdentity, target: str
) -> tuple[LedgerEntry, ...]:
    """Return the visible last batch of each writer of a query to a target.

    Entries behind an open transaction are not visible. Returns nothing if there is no ledger yet.
    """
    last_entries = {}
    for message in _read_entries(native, topic, has_all=False):
        payload = json.loads(message.value() or b"{}")
        writer = (message.key() or b"").decode()
        # Entries of older versions name the target only in their key: `id/kafka:topic`.
        recorded_target = payload.get("target", writer.partition("/")[2].partition(":")[2])
        is_same_query = (payload.get("pipeline"), payload.get("query"), recorded_target) == (
            owner.pipeline,
            owner.query,
            target,
        )
        # This writer's own entry counts even if its query had another name.
        if is_same_query or writer == owner.key:
            last_entries[writer] = _parse_entry(message)
    return tuple(last_entries.values())


def _parse_entry(message: Any) -> LedgerEntry:
    payload = json.loads(message.value() or b"{}")
    return LedgerEntry(
        (message.key() or b"").decode(),
        int(payload["batch"]),
        int(message.timestamp()[1]),
        parse_metadata(payload),
    )


def _read_entries(native: Mapping[str, Any], topic: str, *, has_all: bool) -> Iterator[Any]:
    """Yield entries of committed transactions, oldest first; with `has_all`, wait for open transactions."""
    consumer = create_client(
        Consumer,
        {
            **native,
            "group.id": "millstream-ledger",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        },
    )
    try:
        partition = TopicPartition(topic, 0, OFFSET_BEGINNING)
        # The uncommitted end: a `read_committed` reader stops before an open transaction, which may hide own entries.
        end = read_end_offsets(native, topic).get(0, 0)
        consumer.assign([partition])
        deadline = time.monotonic() + STALLED
        is_at_end = end == 0
        while not is_at_end:
            message = consumer.poll(0.5)
            if time.monotonic() > deadline:
                raise Outage(
                    f"a transaction of another writer has been open in topic '{topic}' for {STALLED:.0f} s",
                    "it ends after its timeout; this start is retried",
                )
            if message is None:
                continue
            if (error := message.error()) is None:
                deadline = time.monotonic() + STALLED
                if message.value() is not None:
                    yield message
            elif error.name() == "_PARTITION_EOF":
                # The end of the committed entries; later ones wait for another writer's transaction.
                is_at_end = not has_all or (message.offset() or 0) >= end
            elif not error.retriable():
                raise KafkaException(error)
    except KafkaException as cause:
        raise Outage(
            f"topic '{topic}' cannot be read: {cause.args[0].str()}", "check that the broker is running"
        ) from cause
    finally:
        consumer.close()


def encode_entry(batch_id: int, rows: int, owner: SinkIdentity, target: str, note: BatchMetadata) -> bytes:
    """Encode the ledger entry of a batch."""
    owner_fields = {"pipeline": owner.pipeline, "query": owner.query, "target": target}
    payload = {"batch": batch_id, "rows": rows, **owner_fields, **note.plain()}
    return json.dumps(payload, separators=(",", ":")).encode()
