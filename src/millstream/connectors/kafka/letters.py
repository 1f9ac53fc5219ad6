"""Dead letters in a Kafka topic: each a record with its own key, value and headers, and one header more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from millstream.connectors.kafka.broker import Broker
from millstream.connectors.kafka.sink import KafkaSink
from millstream.connectors.letters import Box, Keeper, Letter
from millstream.spec.mode import OutputMode

if TYPE_CHECKING:
    from datetime import datetime

    from millstream.connectors.sink import SinkIdentity
    from millstream.connectors.source import Problem

# A record of a letter is as large as the one it was, and a little more; the broker has the last word on size.
_LARGEST = 64 * 1024 * 1024


class KafkaBox(Broker, Box):
    """A Kafka topic, a record a letter."""

    kind = "kafka"
    main = "topic"

    topic: str = Field(examples=["dead-letters"])
    """The topic; made with one partition and without end of retention when it is missing."""
    ledger_topic: str = "_millstream_ledger"
    """Where the numbers of written batches are kept; a compacted topic of one partition, made if missing."""

    def sink(self) -> KafkaSink:
        """The transactional sink whose ledger and fence the letters have."""
        return KafkaSink(
            bootstrap_servers=self.bootstrap_servers,
            security=self.security,
            options={"kafka.max.request.size": _LARGEST, **self.options},
            topic=self.topic,
            ledger_topic=self.ledger_topic,
            transactional=True,
        )

    def keeper(self, identity: SinkIdentity) -> Keeper:
        """Writes in transactions."""
        from millstream.connectors.kafka.keeping import KafkaKeeper  # noqa: PLC0415 - loads the client

        return KafkaKeeper(self.sink(), identity)

    def all(self) -> list[Letter]:
        """The letters among the topic's committed records."""
        from millstream.connectors.kafka.letterbox import kept  # noqa: PLC0415 - as above

        return kept(self, self.topic)

    def purge(self, before: datetime | None, source: str | None) -> int:
        """Delete from the beginning of each partition up to the first letter that is not chosen."""
        from millstream.connectors.kafka.letterbox import purge  # noqa: PLC0415 - as above

        return purge(self, self.topic, before, source)

    def target(self) -> str:
        """The topic."""
        return self.topic

    def problems(self) -> list[Problem]:
        """Brokers without a port, half a login, options that a transactional producer does not know."""
        return self.sink().problems(OutputMode.APPEND)

    def probe(self) -> None:
        """Raises `NotReady` when no broker answers, or the topic would forget letters."""
        from millstream.connectors.kafka.letterbox import probe  # noqa: PLC0415 - as above

        probe(self, self.topic)
