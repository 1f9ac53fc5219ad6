"""A cell of a notebook is changed in place; a terminal gets text."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from millstream.notebook.plot import Axes
from millstream.notebook.screen import SHOWN, Cell, DisplaySnapshot, Output, notebook_kernel, running_cell_id

ROWS = pd.DataFrame({"since": pd.to_datetime(["2026-01-01 12:00"]), "name": ["<b>\x1b[2J"], "n": [None]})


def sight(rows: pd.DataFrame = ROWS) -> DisplaySnapshot:
    return DisplaySnapshot("counts <i>", "batch 1, live", rows, Axes.of(rows))


def test_what_comes_out_of_rows_is_escaped_in_a_page() -> None:
    page = sight().html()

    assert "<b>\x1b" not in page
    assert "&lt;b&gt;" in page
    assert "counts &lt;i&gt;" in page


def test_what_comes_out_of_rows_moves_no_cursor() -> None:
    text = sight().text()

    assert "\x1b" not in text
    assert text.startswith("counts <i>: batch 1, live\nsince")
    assert "2026-01-01 12:00:00" in text
    assert "NULL" in text


def test_a_long_table_is_cut() -> None:
    rows = pd.DataFrame({"n": range(SHOWN + 5)})

    assert len(sight(rows).text().splitlines()) == SHOWN + 2
    assert sight(rows).html().count("<tr>") == SHOWN


def test_a_cell_is_changed_in_place() -> None:
    output: list[tuple[str, bool]] = []

    def publish(data: dict[str, str], _: Any, *, transient: dict[str, str], update: bool) -> None:
        assert set(data) == {"text/html", "text/plain"}
        output.append((transient["display_id"], update))

    screen = Cell("one", SimpleNamespace(display_pub=SimpleNamespace(publish=publish)))
    screen.show(sight())
    screen.show(sight())

    assert output == [("one", False), ("one", True)]


def test_elsewhere_it_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    Output().show(sight())

    assert capsys.readouterr().out == sight().text() + "\n"


@pytest.mark.parametrize(
    ("shell", "is_one"), [(None, False), (object(), False), (SimpleNamespace(kernel=1), True)]
)
def test_only_the_kernel_of_a_notebook_is_one(
    monkeypatch: pytest.MonkeyPatch, shell: Any, is_one: bool
) -> None:
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))

    assert (notebook_kernel() is shell and shell is not None) == is_one


def test_a_cell_is_known_by_its_name_where_the_notebook_gives_one() -> None:
    names = SimpleNamespace(get_parent=lambda: {"metadata": {"cellId": "c1"}})
    nameless = SimpleNamespace(get_parent=dict)

    assert [running_cell_id(names), running_cell_id(nameless), running_cell_id(None)] == ["c1", None, None]
