"""Send dead letters to a topic of the brokers that their records came from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from millstream.diagnostics.failure import InvalidInput

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterable, Sequence

    from millstream.connectors.api.dead_letters import DeadLetter
    from millstream.pipeline.model import Pipeline


def send_portions(
    pipeline: Pipeline, portions: Iterable[Sequence[DeadLetter]], topic: str, sent: Counter[str]
) -> None:
    """Send records, and print how many of each source were sent, also if a later one fails.

    Adds these numbers to `sent`. Raises `InvalidInput` if records of a portion cannot be sent to a topic. Nothing of
    that portion is sent then.
    """
    try:
        for portion in portions:
            _check_origin(pipeline, portion)
            _send(pipeline, portion, topic, sent)
    finally:
        for name, count in sent.items():
            click.echo(f"{name}: {count} records sent to topic '{topic}'", err=True)


def _check_origin(pipeline: Pipeline, letters: Sequence[DeadLetter]) -> None:
    """Raise `InvalidInput` if a record did not come from a topic, or the spec has no source of topics for it."""
    for letter in letters:
        if letter.topic is None:
            raise InvalidInput(
                f"the records of '{letter.source}' did not come from a topic, so they cannot be sent to a topic",
                "correct the records in their source; 'millstream deadletter show' prints them in full",
            )
        if letter.source not in pipeline.sources:
            raise InvalidInput(
                f"the records of '{letter.source}' have a source that is not in the spec, "
                "so they cannot be sent to a topic",
                "name a spec that has this source with -f, or give the source its former name",
            )
        if "topic" not in pipeline.sources[letter.source].source.place:
            raise _no_topic(letter.source)


def _send(pipeline: Pipeline, letters: Sequence[DeadLetter], topic: str, sent: Counter[str]) -> None:
    """Send records, grouped by source."""
    for name in dict.fromkeys(letter.source for letter in letters):
        records = [letter for letter in letters if letter.source == name]
        if not pipeline.sources[name].source.resend(topic, records):
            raise _no_topic(name)
        sent[name] += len(records)


def _no_topic(source: str) -> InvalidInput:
    return InvalidInput(
        f"the records of '{source}' cannot be sent to a topic: in the spec, this source reads no topics",
        "name a spec with -f in which it does, as when the records were read",
    )
