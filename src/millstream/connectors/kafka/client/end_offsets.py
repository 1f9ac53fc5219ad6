"""Watch the end offsets of a source's topics with one client, as often as a live page asks."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from confluent_kafka import IsolationLevel, KafkaException, TopicPartition
from confluent_kafka import admin as kafka
from confluent_kafka.admin import AdminClient

from millstream.connectors.kafka.client.admin import PATIENCE, create_client
from millstream.diagnostics.failure import Unreachable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from millstream.connectors.kafka.client.broker import Broker

# The stubs of confluent_kafka do not declare every name.
_admin: Any = kafka
# Seconds for which a list of partitions is used again: topics rarely gain one, and Spark itself looks at each batch.
_PARTITIONS = 30.0


@dataclass
class EndOffsetWatcher:
    """Reads the end offsets of topics, as a reader of committed records sees them. Used by one thread."""

    broker: Broker
    topics: Sequence[str]
    pattern: str | None = None
    assigned: Mapping[str, Sequence[int]] | None = None
    _client: AdminClient | None = None
    _partitions: list[TopicPartition] = field(default_factory=list)
    _listed: float = 0.0

    def read(self) -> dict[str, dict[int, int]]:
        """Return the offset after the newest record of each partition, by topic.

        Raises `Unreachable` if the broker does not respond within `PATIENCE` seconds.
        """
        servers = ",".join(self.broker.bootstrap_servers)
        try:
            if self._client is None:
                settings: dict[str, Any] = {**self.broker.native(), "socket.timeout.ms": int(PATIENCE * 1000)}
                self._client = create_client(AdminClient, settings)
            if not self._partitions or time.monotonic() - self._listed > _PARTITIONS:
                self._partitions, self._listed = self._list(self._client), time.monotonic()
            if not self._partitions:
                return {}
            futures = self._client.list_offsets(
                dict.fromkeys(self._partitions, _admin.OffsetSpec.latest()),
                isolation_level=IsolationLevel.READ_COMMITTED,
                request_timeout=PATIENCE,
            )
            ends: dict[str, dict[int, int]] = {}
            for partition, future in futures.items():
                ends.setdefault(partition.topic, {})[partition.partition] = future.result(PATIENCE).offset
        except (KafkaException, TimeoutError) as cause:
            # A client that a starting broker told of no broker may never connect again (librdkafka issue 5301).
            self._partitions, self._client = [], None
            raise Unreachable(
                f"no Kafka broker responds at {servers}", "check that the broker is running"
            ) from cause
        return ends

    def _list(self, client: AdminClient) -> list[TopicPartition]:
        known = client.list_topics(timeout=PATIENCE).topics
        names = [*self.topics, *(name for name in known if self.pattern and re.fullmatch(self.pattern, name))]
        return [
            TopicPartition(name, number)
            for name in names
            if name in known and known[name].error is None
            for number in sorted(known[name].partitions)
            if self.assigned is None or number in self.assigned.get(name, ())
        ]
