"""Read the dead letters of a step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from millstream.connectors.api.dead_letters import DeadLetter
    from millstream.pipeline.model import Pipeline
    from millstream.testing.model import Row


class DeadLetterReader:
    """Reads the dead letters of the case's own store, each once."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._store = pipeline.letters
        self._returned: list[DeadLetter] = []
        # The store is new, so a store that can tell that nothing was added is not read.
        self._mark = self._store.change_mark()

    def take(self) -> tuple[Row, ...]:
        """Return the dead letters since the last call."""
        mark = self._store.change_mark()
        if mark is not None and mark == self._mark:
            return ()
        self._mark = mark
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
