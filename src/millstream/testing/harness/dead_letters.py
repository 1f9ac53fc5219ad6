"""Read the dead letters of a step."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from millstream.connectors.api.dead_letters import DeadLetter
    from millstream.pipeline.model import Pipeline
    from millstream.testing.model import Row


class Letterbox:
    """Reads the dead letters of the case's own store, each once."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._store = pipeline.letters
        self._returned: list[DeadLetter] = []
        self._version = 0

    def take(self) -> tuple[Row, ...]:
        """Return the dead letters since the last call."""
        # The store is a local Delta table, whose log has one file per commit.
        version = sum(1 for _ in (Path(self._store.target()) / "_delta_log").glob("*.json"))
        if version == self._version:
            return ()
        self._version = version
        letters = list(self._store.all())
        new = [letter for letter in letters if letter not in self._returned]
        self._returned = letters
        return tuple(_letter_row(letter) for letter in new)


def _letter_row(letter: DeadLetter) -> Row:
    return {
        "source": letter.source,
        "reason": letter.reason,
        "expectation": letter.expectation,
        "value": _decode_text(letter.value),
        "key": _decode_text(letter.key),
        "topic": letter.topic,
        "partition": letter.partition,
        "offset": letter.offset,
        "batch_id": letter.batch_id,
    }


def _decode_text(value: bytes | None) -> Any:
    """Decode bytes as text; return the bytes if they are not text."""
    if value is None:
        return None
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value
