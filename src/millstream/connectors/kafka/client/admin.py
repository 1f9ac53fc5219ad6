"""Query a broker about topics, with a timeout short enough for interactive use."""

from __future__ import annotations

import logging
import re
import threading
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, TypeVar

from confluent_kafka import KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient

from millstream.connectors.api.messages import to_printable_line
from millstream.diagnostics.failure import NotReady, Unreachable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from millstream.connectors.kafka.client.broker import Broker

# Seconds. A broker on the same network responds in milliseconds; one that is starting needs a second or two.
PATIENCE = 5.0

# librdkafka logs every failed connection attempt to standard error unless it has a logger.
SILENT = logging.getLogger("millstream.kafka")
SILENT.addHandler(logging.NullHandler())
SILENT.propagate = False

Client = TypeVar("Client")
# Fields of `security` that name a file, by the setting of librdkafka. A client reads the files when it is created.
_FILES = {"ssl.ca.location": "ca_file", "ssl.certificate.location": "client_pem"}


def create_client(kind: Callable[..., Client], settings: Mapping[str, Any]) -> Client:
    """Create an AdminClient, a Consumer or a Producer.

    Raises `Unreachable` if that fails, such as for a certificate file that is missing or is being replaced.
    """
    try:
        return kind(dict(settings), logger=SILENT)
    except KafkaException as cause:
        reason = re.sub(r"^Failed to create [a-z ]+: ", "", " ".join(cause.args[0].str().split()))
        files = [f"{field} {settings[name]}" for name, field in _FILES.items() if name in settings]
        raise Unreachable(
            f"Kafka at {settings.get('bootstrap.servers')} cannot be reached: {to_printable_line(reason)}",
            f"correct security; its files must exist and be complete: {', '.join(files)}"
            if files
            else "correct security",
        ) from cause


def describe_topics(
    broker: Broker,
    topics: Sequence[str],
    *,
    pattern: str | None = None,
    partitions: Mapping[str, Sequence[int]] | None = None,
) -> dict[str, str]:
    """Return ids and partition counts of topics: `topic.<name>` and `partitions.<name>`.

    `pattern` adds every topic whose whole name it matches; `partitions` must exist. Raises `NotReady` if no broker
    responds within `PATIENCE` seconds, a login fails, or a topic or partition does not exist.
    """
    refusals: list[str] = []
    is_refused = threading.Event()

    def record_refusal(error: Any) -> None:
        if error.name() in ("_AUTHENTICATION", "_SSL", "SASL_AUTHENTICATION_FAILED"):
            refusals.append(error.str())
            is_refused.set()

    settings: dict[str, Any] = {
        **broker.native(),
        "socket.timeout.ms": int(PATIENCE * 1000),
        "error_cb": record_refusal,
    }
    client = create_client(AdminClient, settings)
    servers = ",".join(broker.bootstrap_servers)
    try:
        known = client.list_topics(timeout=PATIENCE).topics
    except KafkaException as cause:
        client.poll(0)
        if is_refused.is_set():
            raise Unreachable(
                f"the Kafka broker at {servers} refused the login: {_extract_cause(refusals[-1])}",
                "correct security: protocol, mechanism, username and password",
            ) from cause
        raise Unreachable(
            f"no Kafka broker responds at {servers}",
            "start the stack with 'millstream up', or correct bootstrap_servers",
        ) from cause
    names = [*topics, *(name for name in known if pattern and re.fullmatch(pattern, name))]
    for name in names:
        if name not in known or known[name].error is not None:
            near = get_close_matches(name, known, n=1)
            suggestion = f"write '{near[0]}', " if near else ""
            raise NotReady(
                f"topic '{name}' does not exist at {servers}"
                + (f"; did you mean '{near[0]}'?" if near else ""),
                f"{suggestion}create the topic, or start the stack with 'millstream up'",
            )
        missing = sorted(set((partitions or {}).get(name, ())) - set(known[name].partitions))
        if missing:
            raise NotReady(
                f"topic '{name}' has {len(known[name].partitions)} partitions, but no partition {missing[0]}",
                f"assign partitions 0 to {len(known[name].partitions) - 1}, or add partitions to the topic",
            )
    counts = {f"partitions.{name}": str(len(known[name].partitions)) for name in names}
    return counts | _topic_ids(client, names)


def _topic_ids(client: AdminClient, topics: Sequence[str]) -> dict[str, str]:
    """Return the ids of topics, which change when a topic is recreated. Old brokers have no ids."""
    if not topics:
        return {}
    futures = client.describe_topics(TopicCollection(list(topics)), request_timeout=PATIENCE)
    ids = {}
    for name, future in futures.items():
        try:
            topic_id = str(future.result(timeout=PATIENCE).topic_id)
            # Kafka's own tools write the id as URL-safe base64.
            ids[f"topic.{name}"] = topic_id.replace("/", "_").replace("+", "-")
        except (KafkaException, TimeoutError):
            # Describing a topic needs a permission that reading does not; the pipeline runs without the id.
            continue
    return ids


def _extract_cause(message: str) -> str:
    """Extract the cause from librdkafka's message, without addresses and times."""
    return message.rpartition("failed: ")[2].partition(" (after")[0].strip() or message
