"""The pages of codes about test files show what is found in them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from millstream.analysis.rule_pages import read_page
from millstream.diagnostics.render import render
from millstream.testing.files.loader import load_text

if TYPE_CHECKING:
    from pathlib import Path

BLOCK = re.compile(r"^```(yaml tests/\w+\.yml|snapshot)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMENT = re.compile(r" +# error: \[MS\d+\]")


@pytest.mark.parametrize("code", ["MS018", "MS019", "MS020"])
def test_a_page_shows_a_test_file_with_its_finding_and_one_without(code: str, tmp_path: Path) -> None:
    error, snapshot, right = (text for _, text in BLOCK.findall(read_page(code) or ""))

    suites = [
        load_text("tests/shop.yml", COMMENT.sub("", text), tmp_path / "shop.yml", lambda _: {})
        for text in (error, right)
    ]

    assert [finding.code for finding in suites[0].findings] == [code]
    marked = [number for number, line in enumerate(error.splitlines(), 1) if f"# error: [{code}]" in line]
    assert [finding.span.line for finding in suites[0].findings if finding.span] == marked
    assert render(suites[0].findings, suites[0].texts) == snapshot
    assert suites[1].findings == ()
