"""Asks a broker about topics, in the time a person waits for an answer."""

from __future__ import annotations

import logging
import re
import threading
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient

from millstream.diagnostics.failure import NotReady, Silent

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from millstream.connectors.kafka.broker import Broker

# A broker on the same network answers in milliseconds; one that starts needs a second or two.
PATIENCE = 5.0

# librdkafka tells every failed attempt to connect on standard error unless it is given a logger.
SILENT = logging.getLogger("millstream.kafka")
SILENT.addHandler(logging.NullHandler())
SILENT.propagate = False


def look(
    broker: Broker,
    topics: Sequence[str],
    *,
    pattern: str | None = None,
    partitions: Mapping[str, Sequence[int]] | None = None,
) -> dict[str, str]:
    """Ids and partition counts of topics: `topic.<name>` and `partitions.<name>`.

    `pattern` adds every topic it matches whole; `partitions` are those that must exist. Raises `NotReady`
    when no broker answers within `PATIENCE` seconds, a login fails, or a topic or partition is missing.
    """
    refusals: list[str] = []
    refused = threading.Event()

    def failed(error: Any) -> None:
        if error.name() in ("_AUTHENTICATION", "_SSL", "SASL_AUTHENTICATION_FAILED"):
            refusals.append(error.str())
            refused.set()

    settings: dict[str, Any] = {
        **broker.native(),
        "socket.timeout.ms": int(PATIENCE * 1000),
        "error_cb": failed,
    }
    client = AdminClient(settings, logger=SILENT)
    servers = ",".join(broker.bootstrap_servers)
    try:
        known = client.list_topics(timeout=PATIENCE).topics
    except KafkaException as cause:
        client.poll(0)
        if refused.is_set():
            raise Silent(
                f"the Kafka broker at {servers} refused the login: {_reason(refusals[-1])}",
                "correct security: protocol, mechanism, username and password",
            ) from cause
        raise Silent(
            f"no Kafka broker answers at {servers}",
            "start the stack with 'millstream up', or correct bootstrap_servers",
        ) from cause
    wanted = [*topics, *(name for name in known if pattern and re.fullmatch(pattern, name))]
    for name in wanted:
        if name not in known or known[name].error is not None:
            raise NotReady(
                f"topic '{name}' does not exist at {servers}",
                "create the topic, or start the stack with 'millstream up'",
            )
        missing = sorted(set((partitions or {}).get(name, ())) - set(known[name].partitions))
        if missing:
            raise NotReady(
                f"topic '{name}' has {len(known[name].partitions)} partitions, and no partition {missing[0]}",
                f"assign partitions 0 to {len(known[name].partitions) - 1}, or add partitions to the topic",
            )
    counts = {f"partitions.{name}": str(len(known[name].partitions)) for name in wanted}
    return counts | _ids(client, wanted)


def _ids(client: AdminClient, topics: Sequence[str]) -> dict[str, str]:
    """Ids of topics: one that was deleted and made again has another. Nothing from a broker without ids."""
    if not topics:
        return {}
    asked = client.describe_topics(TopicCollection(list(topics)), request_timeout=PATIENCE)
    found = {}
    for name, answer in asked.items():
        try:
            said = str(answer.result(timeout=PATIENCE).topic_id)
            # As Kafka's own tools write an id: base64 for addresses.
            found[f"topic.{name}"] = said.replace("/", "_").replace("+", "-")
        except (KafkaException, TimeoutError):
            # Describing needs a right that reading does not; a pipeline runs without the id.
            continue
    return found


def _reason(said: str) -> str:
    """The cause in what librdkafka says, without the addresses and times around it."""
    return said.rpartition("failed: ")[2].partition(" (after")[0].strip() or said
