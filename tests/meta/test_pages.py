"""Each page of a rule has a failing pipeline, a passing one, one that looks alike, and says what Spark does."""

from __future__ import annotations

import pytest

import rule_pages
from millstream.analysis.check import rules
from millstream.analysis.pages import page, pages, says
from millstream.diagnostics.catalogue import CODES

RULES = list(rules())
INSTEAD, ALIKE = "Use instead", "Looks alike, and is right"


@pytest.mark.parametrize("code", RULES)
def test_a_page_begins_with_a_pipeline_that_gives_its_code_and_shows_how_it_is_told(code: str) -> None:
    first = rule_pages.read(pages()[code])[0]

    assert code in [mark[3] for mark in first.wanted]
    assert first.snapshot
    assert f"[{code}]" in first.snapshot


@pytest.mark.parametrize("section", [INSTEAD, ALIKE])
@pytest.mark.parametrize("code", RULES)
def test_a_page_has_a_pipeline_without_its_code(code: str, section: str) -> None:
    blocks = [block for block in rule_pages.read(pages()[code]) if block.section == section]

    assert blocks, f"there is no pipeline under '## {section}'"
    assert [block.number for block in blocks if code in [mark[3] for mark in block.wanted]] == []


@pytest.mark.parametrize("code", RULES)
def test_a_page_ends_with_what_spark_itself_does(code: str) -> None:
    text = page(code) or ""

    assert says(text) is not None, f"the last line is {text.rstrip().splitlines()[-1]!r}"


def test_every_code_of_the_catalogue_has_a_page() -> None:
    assert sorted(set(CODES) - set(pages())) == []


@pytest.mark.parametrize("code", sorted(set(pages()) - set(RULES)))
def test_a_page_of_the_catalogue_is_headed_by_the_name_and_code(code: str) -> None:
    assert (page(code) or "").partition("\n")[0] == f"# {CODES[code][0]} ({code})"
