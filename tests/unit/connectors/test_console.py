"""The block that a batch is printed as."""

from __future__ import annotations

from typing import Any

import pytest

from millstream.connectors.api.writer import SinkIdentity
from millstream.connectors.console.sink import ConsoleSink
from millstream.connectors.console.writer import ConsoleWriter
from millstream.spec.output_mode import OutputMode


def writer(**settings: Any) -> ConsoleWriter:
    return ConsoleWriter(
        ConsoleSink.model_validate(settings),
        SinkIdentity("shop", "funnel", "3f0c", "console", OutputMode.APPEND),
    )


def test_a_batch_is_a_heading_and_a_table() -> None:
    block = writer().block(["id", "name"], [["1", "ann"], ["2", "bob"]], 7, 2)

    assert block == "funnel, batch 7: 2 rows\nid │ name\n───┼─────\n1  │ ann\n2  │ bob\n\n"


def test_rows_that_are_left_out_are_counted() -> None:
    assert writer().block(["id"], [["1"]], 0, 5).endswith("… and 4 more\n\n")


def test_an_empty_batch_is_a_heading_alone() -> None:
    assert writer().block(["id"], [], 3, 0) == "funnel, batch 3: 0 rows\n\n"


@pytest.mark.parametrize(
    ("truncate", "shown"), [(5, "abcd…"), (False, "abcdefghij" * 3), (True, "abcdefghij" * 2)]
)
def test_long_texts_are_cut_as_asked(truncate: bool | int, shown: str) -> None:
    last = writer(truncate=truncate).block(["text"], [["abcdefghij" * 3]], 0, 1).splitlines()[-2]

    assert last == (shown if truncate is not True else shown[:19] + "…")


def test_a_value_cannot_steer_the_terminal() -> None:
    assert "\x1b" not in writer().block(["text"], [["\x1b]0;owned\x07"]], 0, 1)


def test_markup_in_a_value_is_text() -> None:
    assert "[red]x[/red]" in writer().block(["text"], [["[red]x[/red]"]], 0, 1)
