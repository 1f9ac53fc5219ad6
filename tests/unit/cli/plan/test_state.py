"""The JSON of `millstream state show`, and the end of an export that fails, without Spark."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import Row

from millstream.cli.plan.state import _print, _write

if TYPE_CHECKING:
    from pathlib import Path


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


@pytest.mark.parametrize("error", [PySparkException("a damaged file"), KeyboardInterrupt()])
def test_an_export_that_fails_leaves_no_folder(tmp_path: Path, error: BaseException) -> None:
    place = tmp_path / "0"

    def write_half(_: str) -> None:
        place.mkdir()
        (place / "part-0.parquet").touch()
        raise error

    frame: Any = SimpleNamespace(write=SimpleNamespace(parquet=write_half))

    with pytest.raises(type(error)):
        _write(frame, place)

    assert not place.exists()
