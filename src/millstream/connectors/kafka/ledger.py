"""The ledger of Kafka sinks: a compacted topic that says which batch each writer committed last."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from millstream.connectors.kafka.admin import PATIENCE, SILENT
from millstream.connectors.kafka.ends import ends
from millstream.connectors.remembered import Entry, Note, noted
from millstream.diagnostics.failure import NotReady, Outage

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from millstream.connectors.sink import SinkIdentity

# One partition: a writer's marks have one order, and whoever reads them reads them all.
_SETTINGS = {"cleanup.policy": "compact", "retention.ms": "-1"}
# Another writer's open transaction hides what stands behind it. Its own timeout, a minute, ends a dead one.
STALLED = 90.0


def ensure(native: Mapping[str, Any], topic: str) -> None:
    """Make the ledger's topic if it is missing. Raises `NotReady` where that is not allowed, or it is no ledger."""
    admin = AdminClient(dict(native), logger=SILENT)
    try:
        known = admin.list_topics(topic, timeout=PATIENCE).topics.get(topic)
        if known is not None and known.error is None:
            if len(known.partitions) != 1:
                raise NotReady(
                    f"topic '{topic}' has {len(known.partitions)} partitions, and a ledger has one",
                    "name another topic in ledger_topic; it is made when it is missing",
                )
            return
        made = NewTopic(topic, num_partitions=1, replication_factor=-1, config=_SETTINGS)
        admin.create_topics([made], request_timeout=PATIENCE)[topic].result(PATIENCE)
    except KafkaException as cause:
        if cause.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS:
            return
        raise NotReady(
            f"topic '{topic}', which remembers the batches of transactional sinks, cannot be made: "
            f"{cause.args[0].str()}",
            f"create it with one partition and cleanup.policy=compact, or allow it: {topic}",
        ) from cause


def last(native: Mapping[str, Any], topic: str, writer: str) -> Entry | None:
    """The batch that a writer committed last, or None.

    True only once the writer's producer has called `init_transactions`: its own open transactions have ended
    then, and waiting for the others' makes every mark that stands in the topic visible. Raises `Outage` when
    the broker does not answer, or another writer's transaction stays open for `STALLED` seconds.
    """
    found = [_entry(one) for one in _marks(native, topic, whole=True) if one.key() == writer.encode()]
    return found[-1] if found else None


def entries(
    native: Mapping[str, Any], topic: str, pipeline: str, query: str, target: str
) -> tuple[Entry, ...]:
    """The batch that each writer of a query committed last to a target, as far as it can be seen at this moment.

    Marks behind a transaction that is open are not. Nothing before there is a ledger.
    """
    found = {}
    for one in _marks(native, topic, whole=False):
        said = json.loads(one.value() or b"{}")
        writer = (one.key() or b"").decode()
        # A mark of an older version names its target only as the key does: `id/kafka:topic`.
        place = said.get("target", writer.partition("/")[2].partition(":")[2])
        if (said.get("pipeline"), said.get("query"), place) == (pipeline, query, target):
            found[writer] = _entry(one)
    return tuple(found.values())


def _entry(message: Any) -> Entry:
    said = json.loads(message.value() or b"{}")
    return Entry(
        (message.key() or b"").decode(), int(said["batch"]), int(message.timestamp()[1]), noted(said)
    )


def _marks(native: Mapping[str, Any], topic: str, *, whole: bool) -> Iterator[Any]:
    """The marks of committed transactions, oldest first; `whole` waits for transactions that are open."""
    consumer = Consumer(
        {
            **native,
            "group.id": "millstream-ledger",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        },
        logger=SILENT,
    )
    try:
        place = TopicPartition(topic, 0, OFFSET_BEGINNING)
        # Not as this reader sees it: it stops before another's open transaction, and its own mark may be behind.
        end = ends(native, topic).get(0, 0)
        consumer.assign([place])
        until = time.monotonic() + STALLED
        reached = end == 0
        while not reached:
            message = consumer.poll(0.5)
            if time.monotonic() > until:
                raise Outage(
                    f"a transaction of another writer has been open in topic '{topic}' for {STALLED:.0f} s",
                    "it ends by its timeout; this start is tried again",
                )
            if message is None:
                continue
            if (error := message.error()) is None:
                if message.value() is not None:
                    yield message
            elif error.name() == "_PARTITION_EOF":
                # The end of what is committed; marks between here and the end wait for another's transaction.
                reached = not whole or (message.offset() or 0) >= end
            elif not error.retriable():
                raise KafkaException(error)
    except KafkaException as cause:
        raise Outage(
            f"topic '{topic}' cannot be read: {cause.args[0].str()}", "see that the broker is up"
        ) from cause
    finally:
        consumer.close()


def mark(batch_id: int, rows: int, owner: SinkIdentity, target: str, note: Note) -> bytes:
    """What stands in the ledger for a batch."""
    whose = {"pipeline": owner.pipeline, "query": owner.query, "target": target}
    said = {"batch": batch_id, "rows": rows, **whose, **note.plain()}
    return json.dumps(said, separators=(",", ":")).encode()
