"""The writer of dead letters claims its fence only for the run that has the query's checkpoint."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from unittest.mock import MagicMock

from millstream.connectors.api.writer import SinkIdentity
from millstream.connectors.postgres import dead_letter_writer
from millstream.connectors.postgres.dead_letters import PostgresDeadLetterStore
from millstream.connectors.postgres.writer import PostgresWriter
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_it_opens_as_the_owner_of_the_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Any] = []
    monkeypatch.setattr(PostgresWriter, "open", lambda writer, *_: opened.append(writer.checkpoint))
    monkeypatch.setattr(dead_letter_writer, "_to_table_rows", lambda frame: frame)
    store = PostgresDeadLetterStore.model_validate({"url": "postgresql://u:p@h/d"})
    keeper = store.keeper(SinkIdentity("shop", "copy", "1111", "dead_letters", OutputMode.APPEND))
    keeper.checkpoint = tmp_path

    keeper.open(MagicMock())

    assert opened == [tmp_path]
