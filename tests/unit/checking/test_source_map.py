"""Where a call is in its file, also after the file has changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.checking.source_map import python_line_span

if TYPE_CHECKING:
    from pathlib import Path


def test_a_line_is_that_of_the_file_as_it_is_now(tmp_path: Path) -> None:
    file = tmp_path / "views.py"
    file.write_text("a = 1\n    b = 2\n")
    assert python_line_span(str(file), 2).column == 5

    file.write_text("first = 1\n  call()\n")

    span = python_line_span(str(file), 2)
    assert (span.column, span.end_column) == (3, 9)
