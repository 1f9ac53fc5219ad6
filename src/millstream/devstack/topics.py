"""Topics of a broker, made as a pipeline needs them."""

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

# Enough to see that partitions exist (order, lag, skew), few enough for two cores.
PARTITIONS = 4
_SECONDS = 15
_LOOK = 0.02


def admin(address: str) -> AdminClient:
    """A client of the broker at HOST:PORT; connects at the first question."""
    return AdminClient(
        {"bootstrap.servers": address, "log_level": 0, "socket.timeout.ms": 5000}, error_cb=_quiet
    )


def partitions(address: str) -> dict[str, int]:
    """How many partitions each topic has. Raises NotReady when the broker does not answer."""
    try:
        found = admin(address).list_topics(timeout=_SECONDS).topics
    except KafkaException as failed:
        raise NotReady(
            f"the Kafka broker at {address} does not answer", "start it, for a local one with 'millstream up'"
        ) from failed
    return {name: len(topic.partitions) for name, topic in found.items()}


def provide(address: str, wanted: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Make the topics that are missing, and give their names once the broker knows them.

    `wanted` is settings by topic: `partitions`, and any setting that a Kafka topic has. A topic that
    exists is left as it is. Raises NotReady when the broker refuses one or leads none of its
    partitions in time.
    """
    there = partitions(address)
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
        for name, settings in wanted.items()
        if name not in there
    ]
    if not missing:
        return []
    client = admin(address)  # must live until the answers are in
    for name, made in client.create_topics(missing, operation_timeout=_SECONDS).items():
        try:
            made.result(_SECONDS)
        except KafkaException as failed:
            # Two commands may make the same topic at once.
            if failed.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise NotReady(
                    f"the broker at {address} refused the topic '{name}': {failed.args[0].str()}",
                    "correct the topic's name or settings, or ask the broker's keeper",
                ) from failed
    names = [topic.topic for topic in missing]
    _known(client, address, names)
    return names


def _known(client: AdminClient, address: str, names: Sequence[str]) -> None:
    """Wait until the broker tells a leader for each of their partitions. It answers a moment before.

    Raises NotReady when it does not within `_SECONDS`.
    """
    until = time.monotonic() + _SECONDS
    while time.monotonic() < until:
        with contextlib.suppress(KafkaException):
            there = client.list_topics(timeout=_SECONDS).topics
            made = [there[name].partitions.values() for name in names if name in there]
            if len(made) == len(names) and all(part.leader >= 0 for one in made for part in one):
                return
        time.sleep(_LOOK)
    raise NotReady(
        f"the broker at {address} made {', '.join(names)} and tells no leader of them yet",
        "see that it runs, for a local one with 'millstream ps', and try again",
    )


def _quiet(error: object) -> None:
    """What goes wrong is raised by the call that it concerns."""
