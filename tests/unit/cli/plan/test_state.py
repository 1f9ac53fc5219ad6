"""The JSON of `millstream state show`, without Spark."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from pyspark.sql import Row

from millstream.cli.plan.state import _print

if TYPE_CHECKING:
    import pytest


class Frame:
    """A frame of one row."""

    def __init__(self, **values: object) -> None:
        self.row = Row(**values)

    def limit(self, _: int) -> Frame:
        return self

    def collect(self) -> list[Row]:
        return [self.row]


def test_a_column_does_not_replace_the_label_of_the_state(capsys: pytest.CaptureFixture[str]) -> None:
    frame: Any = Frame(state="CA", sum=float("nan"), inner=Row(state="x", key=b"\xff"))
    store: Any = SimpleNamespace(operator=1, label="groups")

    _print(frame, store, 20, as_json=True)

    assert json.loads(capsys.readouterr().out) == {
        "operator": 1,
        "state": "groups",
        "state_": "CA",
        "sum": "NaN",
        "inner": {"state": "x", "key": "/w=="},
    }
