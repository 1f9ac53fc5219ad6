"""Send dead letters to a topic, with their key and headers, and a header with their original position."""

from __future__ import annotations

from typing import TYPE_CHECKING

from confluent_kafka import KafkaException, Producer

from millstream.connectors.kafka.client.admin import create_client
from millstream.diagnostics.failure import NotReady

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millstream.connectors.api.dead_letters import DeadLetter
    from millstream.connectors.kafka.client.broker import Broker

# Header by which a reader recognises a dead letter that was sent twice.
PLACE = "millstream-dead-letter"
_FLUSH = 60.0


def resend(broker: Broker, topic: str, dead_letters: Sequence[DeadLetter]) -> None:
    """Send dead letters in order and wait for acknowledgement. Raises `NotReady` if one fails."""
    producer = create_client(Producer, {**broker.native(), "enable.idempotence": True})
    errors: list[str] = []
    for dead_letter in dead_letters:
        headers = [
            (str(header["key"]), header["value"])
            for header in dead_letter.headers or ()
            if header["key"] != PLACE
        ]
        position = f"{dead_letter.topic}/{dead_letter.partition}@{dead_letter.offset}"
        try:
            producer.produce(
                topic,
                dead_letter.value,
                dead_letter.key,
                headers=[*headers, (PLACE, position.encode())],
                on_delivery=lambda error, _: errors.append(error.str()) if error is not None else None,
            )
        except (KafkaException, BufferError) as error:
            errors.append(str(error))
            break
        producer.poll(0)
    if producer.flush(_FLUSH) or errors:
        reason = errors[0] if errors else "no response"
        raise NotReady(
            f"the broker did not accept the records for topic '{topic}': {reason}",
            "some may have arrived: the header 'millstream-dead-letter' of each has its position",
        )
