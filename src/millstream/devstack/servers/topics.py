"""Create the topics that a pipeline needs, and inspect those that exist."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from millstream.diagnostics.failure import NotReady

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# Enough to observe the effects of partitions (order, lag, skew), few enough for two cores.
PARTITIONS = 4
_SECONDS = 15
_LOOK = 0.02


def admin_client(address: str) -> AdminClient:
    """Return a client of the broker at HOST:PORT; it connects at the first request."""
    return AdminClient(
        {"bootstrap.servers": address, "log_level": 0, "socket.timeout.ms": 5000}, error_cb=_quiet
    )


def partition_counts(address: str) -> dict[str, int]:
    """Return the number of partitions of each topic. Raises NotReady if the broker does not answer."""
    try:
        topics = admin_client(address).list_topics(timeout=_SECONDS).topics
    except KafkaException as error:
        raise NotReady(
            f"the Kafka broker at {address} does not answer", "start it, for a local one with 'millstream up'"
        ) from error
    return {name: len(topic.partitions) for name, topic in topics.items()}


def create_topics(address: str, topics: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Create the missing topics, and return their names once the broker knows them.

    `topics` contains settings by topic: `partitions`, and any setting of a Kafka topic. An existing
    topic is not changed. Raises NotReady if the broker refuses a topic or does not elect leaders of its
    partitions in time.
    """
    existing = partition_counts(address)
    missing = [
        NewTopic(
            name,
            num_partitions=int(settings.get("partitions", PARTITIONS)),
            replication_factor=int(settings.get("replication_factor", 1)),
            config={
                key: value
                for key, value in settings.items()
                if key not in ("partitions", "replication_factor")
            },
        )
        for name, settings in topics.items()
        if name not in existing
    ]
    if not missing:
        return []
    client = admin_client(address)  # must exist until all responses have arrived
    for name, future in client.create_topics(missing, operation_timeout=_SECONDS).items():
        try:
            future.result(_SECONDS)
        except KafkaException as error:
            # Two commands may create the same topic at the same time.
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise NotReady(
                    f"the broker at {address} refused the topic '{name}': {error.args[0].str()}",
                    "correct the topic's name or settings, or ask the broker's administrator",
                ) from error
    names = [topic.topic for topic in missing]
    _await_leaders(client, address, names)
    return names


def _await_leaders(client: AdminClient, address: str, names: Sequence[str]) -> None:
    """Wait until each partition of the new topics has a leader, which the broker reports a moment after creation.

    Raises NotReady if this takes longer than `_SECONDS`.
    """
    deadline = time.monotonic() + _SECONDS
    while time.monotonic() < deadline:
        with contextlib.suppress(KafkaException):
            topics = client.list_topics(timeout=_SECONDS).topics
            partitions_by_topic = [topics[name].partitions.values() for name in names if name in topics]
            if len(partitions_by_topic) == len(names) and all(
                part.leader >= 0 for topic_partitions in partitions_by_topic for part in topic_partitions
            ):
                return
        time.sleep(_LOOK)
    raise NotReady(
        f"the broker at {address} created {', '.join(names)} but reports no leader of them yet",
        "check that it runs, for a local one with 'millstream ps', and try again",
    )


def _quiet(error: object) -> None:
    """Ignore errors here: the call that fails raises them."""
