"""A continuous query reads its checkpoint while it runs, which a remote file system may refuse for a moment."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from millstream.engine import continuous_query
from millstream.engine.continuous_query import FlowingQuery
from millstream.engine.streaming_query import RunningQuery

if TYPE_CHECKING:
    import pytest


def test_a_checkpoint_that_cannot_be_read_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    class Away:
        def __init__(self, _: object) -> None: ...

        def committed(self) -> int:
            raise ConnectionRefusedError

    monkeypatch.setattr(continuous_query, "Checkpoint", Away)
    monkeypatch.setattr(RunningQuery, "look", lambda _: None)
    monkeypatch.setattr(FlowingQuery, "_folder", lambda _: None)
    query: Any = object.__new__(FlowingQuery)
    query.trigger, query._last_offsets, query._committed_before_start = (
        SimpleNamespace(continuous=True),
        None,
        None,
    )

    query.look()

    assert not query.has_delivered
