"""Send dead letters to a topic, with their key, their headers, and a header that tells where they stood."""

from __future__ import annotations

from typing import TYPE_CHECKING

from confluent_kafka import KafkaException, Producer

from millstream.connectors.kafka.admin import SILENT
from millstream.diagnostics.failure import NotReady

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millstream.connectors.kafka.broker import Broker
    from millstream.connectors.letters import Letter

# The header by which a reader knows a letter that came twice.
PLACE = "millstream-dead-letter"
_FLUSH = 60.0


def resend(broker: Broker, topic: str, letters: Sequence[Letter]) -> None:
    """Send them in order and wait for the broker. Raises `NotReady` when one did not arrive."""
    producer = Producer({**broker.native(), "enable.idempotence": True}, logger=SILENT)
    lost: list[str] = []
    for letter in letters:
        headers = [(str(one["key"]), one["value"]) for one in letter.headers or () if one["key"] != PLACE]
        place = f"{letter.topic}/{letter.partition}@{letter.offset}"
        try:
            producer.produce(
                topic,
                letter.value,
                letter.key,
                headers=[*headers, (PLACE, place.encode())],
                on_delivery=lambda error, _: lost.append(error.str()) if error is not None else None,
            )
        except (KafkaException, BufferError) as refused:
            lost.append(str(refused))
            break
        producer.poll(0)
    if producer.flush(_FLUSH) or lost:
        said = lost[0] if lost else "it does not answer"
        raise NotReady(
            f"the broker did not take the records for topic '{topic}': {said}",
            "some may have arrived: each has its place in the header 'millstream-dead-letter'",
        )
