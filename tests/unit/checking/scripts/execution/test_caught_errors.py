"""Errors that a script catches: which of them is a mistake of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from millstream.checking.scripts.execution.caught_errors import CaughtErrors

if TYPE_CHECKING:
    from pathlib import Path

CALL = """
def call():
    return missing
"""


@pytest.mark.parametrize(
    ("clause", "is_passed_over"),
    [
        ("except Exception as error:\n    print(error)", True),
        ("except:\n    pass", True),
        ("except (ValueError, BaseException):\n    pass", True),
        ("except NameError:\n    pass", False),
        ("except NameError:\n    pass\nexcept Exception:\n    pass", False),
    ],
)
def test_an_error_is_passed_over_by_a_clause_for_all_errors(
    tmp_path: Path, clause: str, is_passed_over: bool
) -> None:
    script = tmp_path / "job.py"
    text = f"{CALL}\ntry:\n    call()\n{clause}\n"
    script.write_text(text, encoding="utf-8")

    with CaughtErrors() as caught:
        exec(compile(text, str(script), "exec"), {})

    assert isinstance(caught.find_last(), NameError) == is_passed_over


def test_an_error_about_a_value_is_no_mistake(tmp_path: Path) -> None:
    script = tmp_path / "job.py"
    text = "try:\n    int('x')\nexcept Exception:\n    pass\n"
    script.write_text(text, encoding="utf-8")

    with CaughtErrors() as caught:
        exec(compile(text, str(script), "exec"), {})

    assert caught.find_last() is None
    assert isinstance(caught.find_last(lambda _error: True), ValueError)
