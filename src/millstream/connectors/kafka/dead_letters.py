"""Dead letters in a Kafka topic: each is a record with its own key, value and headers, and one more header."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from pydantic import Field

from millstream.connectors.api.dead_letters import DeadLetter, DeadLetterStore, DeadLetterWriter, Group
from millstream.connectors.kafka.client.broker import Broker
from millstream.connectors.kafka.client.options import LEDGER_TOPIC
from millstream.connectors.kafka.sink import KafkaSink
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from datetime import datetime

    from millstream.connectors.api.values.problem import Problem
    from millstream.connectors.api.writer import SinkIdentity

# A dead letter's record is slightly larger than the original record; the broker has the final limit on size.
_LARGEST = 64 * 1024 * 1024


class KafkaDeadLetterStore(Broker, DeadLetterStore):
    """A Kafka topic with one record per dead letter."""

    kind = "kafka"
    main = "topic"

    topic: str = Field(examples=["dead-letters"])
    """The topic. Created with one partition and unlimited retention if it is missing."""
    ledger_topic: str = LEDGER_TOPIC
    """Topic for the batch ledger: compacted, with one partition; created if missing."""

    def sink(self) -> KafkaSink:
        """Return the transactional sink that provides the ledger and the fencing."""
        return KafkaSink(
            bootstrap_servers=self.bootstrap_servers,
            security=self.security,
            options={"kafka.max.request.size": _LARGEST, **self.options},
            topic=self.topic,
            ledger_topic=self.ledger_topic,
            transactional=True,
        )

    def keeper(self, identity: SinkIdentity) -> DeadLetterWriter:
        """Create a writer that uses transactions."""
        from millstream.connectors.kafka.dead_letter_writer import KafkaDeadLetterWriter  # noqa: PLC0415 - loads the client

        return KafkaDeadLetterWriter(self.sink(), identity)

    def all(self) -> Iterator[DeadLetter]:
        """Read the dead letters among the topic's committed records."""
        from millstream.connectors.kafka.dead_letter_topic import read_dead_letters  # noqa: PLC0415 - as above

        return read_dead_letters(self, self.topic)

    def latest(self, limit: int, sources: Sequence[str] = ()) -> list[DeadLetter]:
        """Read the newest dead letters from the ends of the partitions."""
        from millstream.connectors.kafka.dead_letter_topic import read_latest  # noqa: PLC0415 - as above

        return read_latest(self, self.topic, limit, sources)

    def counts(self, before: datetime | None = None) -> Counter[Group]:
        """Count by reading every record, because a broker has no counts; none stays in memory."""
        return Counter(
            (dead_letter.query, dead_letter.source, dead_letter.reason)
            for dead_letter in self.all()
            if before is None or dead_letter.at < before
        )

    def purge(self, before: datetime | None, source: str | None) -> int:
        """Delete from the start of each partition up to the first dead letter that is not chosen."""
        from millstream.connectors.kafka.dead_letter_topic import purge  # noqa: PLC0415 - as above

        return purge(self, self.topic, before, source)

    def delete_sent(self, source: str, written: Mapping[str, Collection[datetime]]) -> int:
        """Delete from the start of each partition up to the first dead letter that is not chosen."""
        from millstream.connectors.kafka.dead_letter_topic import delete_sent  # noqa: PLC0415 - as above

        return delete_sent(self, self.topic, source, written)

    def target(self) -> str:
        """Return the topic."""
        return self.topic

    def problems(self) -> list[Problem]:
        """Check brokers, login, and options that a transactional producer does not support."""
        return self.sink().problems(OutputMode.APPEND)

    def probe(self) -> None:
        """Raise `NotReady` if no broker responds or the topic would lose dead letters."""
        from millstream.connectors.kafka.dead_letter_topic import probe  # noqa: PLC0415 - as above

        probe(self, self.topic)
