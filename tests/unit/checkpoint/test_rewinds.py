"""The store of the dead letters is not rewound with a checkpoint: new letters get a name of their own."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest.mock import MagicMock

from millstream.checkpoint.folder import Checkpoint
from millstream.checkpoint.rewinds import add_rewind, count_rewinds
from millstream.connectors.api.writer import SinkIdentity
from millstream.engine.delivery.dead_letters import DeadLetters
from millstream.engine.delivery.row_isolation_writer import create_row_isolation_writer
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from pathlib import Path


def letters_key(checkpoint: Path) -> str:
    identities: list[Any] = []
    store = SimpleNamespace(keeper=lambda identity: identities.append(identity) or SimpleNamespace())
    pipeline: Any = SimpleNamespace(name="shop", letters=store)
    DeadLetters.of(pipeline, "copy", "1111", Checkpoint(checkpoint), [])
    return str(identities[0].key)


def test_the_letters_of_a_rewound_checkpoint_are_those_of_another_writer(tmp_path: Path) -> None:
    keys = [letters_key(tmp_path)]
    for _ in range(2):
        add_rewind(tmp_path)
        keys.append(letters_key(tmp_path))

    assert keys == ["1111/dead_letters", "1111+1/dead_letters", "1111+2/dead_letters"]


def test_rows_that_a_sink_refuses_after_a_rewind_are_those_of_another_writer(tmp_path: Path) -> None:
    identities: list[Any] = []
    store = SimpleNamespace(keeper=lambda identity: identities.append(identity) or SimpleNamespace())
    pipeline: Any = SimpleNamespace(letters=store, reads=lambda _: "orders")
    identity = SinkIdentity("shop", "copy", "1111", "postgres:out", OutputMode.APPEND)
    inner: Any = MagicMock(checkpoint=tmp_path)

    for _ in range(2):
        create_row_isolation_writer(pipeline, identity, inner, None)
        add_rewind(tmp_path)

    assert [made.query_id for made in identities] == ["1111", "1111+1"]


def test_a_rewind_of_a_linked_copy_leaves_the_original_alone(tmp_path: Path) -> None:
    original, copy = tmp_path / "original", tmp_path / "copy"
    for folder in (original, copy):
        folder.mkdir()
    add_rewind(original)
    (copy / "_millstream").mkdir()
    os.link(original / "_millstream" / "rewinds", copy / "_millstream" / "rewinds")

    add_rewind(copy)

    assert (count_rewinds(original), count_rewinds(copy)) == (1, 2)
