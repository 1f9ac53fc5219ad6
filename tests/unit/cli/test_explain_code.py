"""`explain CODE` prints the page of every code, from the package alone."""

from __future__ import annotations

import re

import pytest

from millstream.analysis.rule_pages import find_pages
from millstream.cli.explain.page_rendering import page_for_readers
from millstream.cli.main import run_command


@pytest.mark.parametrize("code", ["MS201", "MS111", "ms001"])
def test_the_page_of_a_code_is_printed(code: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["explain", code]) == 0

    page = find_pages()[code.upper()].read_text(encoding="utf-8")
    assert capsys.readouterr().out == page_for_readers(page)


def test_every_code_has_a_page_in_the_package() -> None:
    assert [code for code, file in find_pages().items() if "millstream" not in file.parts] == []


def test_no_page_shows_the_marks_of_its_tests() -> None:
    pages = {code: page_for_readers(file.read_text(encoding="utf-8")) for code, file in find_pages().items()}

    assert [code for code, page in pages.items() if re.search(r"(?m)^ .*\[MS\d+\]\s*$", page)] == []


def test_a_code_that_there_is_none_of_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["explain", "MS999"]) == 2

    assert "there is no code MS999" in capsys.readouterr().err
