"""The dead letters that a step left."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from millstream.connectors.letters import Letter
    from millstream.pipeline.model import Pipeline
    from millstream.testing.case import Row


class Letterbox:
    """Tells the letters of the case's own table, each once."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._box = pipeline.letters
        self._told: list[Letter] = []
        self._version = 0

    def take(self) -> tuple[Row, ...]:
        """The letters that came since the last call."""
        # Moved below a folder of this machine: Delta's log has a file a commit.
        version = sum(1 for _ in (Path(self._box.target()) / "_delta_log").glob("*.json"))
        if version == self._version:
            return ()
        self._version = version
        every = self._box.all()
        new = [letter for letter in every if letter not in self._told]
        self._told = every
        return tuple(_row(letter) for letter in new)


def _row(letter: Letter) -> Row:
    return {
        "source": letter.source,
        "reason": letter.reason,
        "expectation": letter.expectation,
        "value": _text(letter.value),
        "key": _text(letter.key),
        "topic": letter.topic,
        "partition": letter.partition,
        "offset": letter.offset,
        "batch_id": letter.batch_id,
    }


def _text(value: bytes | None) -> Any:
    """Bytes as the text they are; as bytes where they are none."""
    if value is None:
        return None
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value
