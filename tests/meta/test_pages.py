"""Each page of a rule has a failing pipeline, a passing one, one that is not a finding, and says what Spark does."""

from __future__ import annotations

import re

import pytest

import rule_pages
from millstream.analysis.rule_pages import find_pages, parse_spark_behaviour, read_page
from millstream.analysis.rule_runner import load_rules
from millstream.diagnostics.spec_codes import CODES

RULES = list(load_rules())
INSTEAD, NOT_A_FINDING = "Use instead", "Not a finding"


@pytest.mark.parametrize("code", RULES)
def test_a_page_begins_with_a_pipeline_that_gives_its_code_and_shows_how_it_is_told(code: str) -> None:
    first = rule_pages.read(find_pages()[code])[0]

    assert code in [mark[3] for mark in first.expected_marks]
    assert first.snapshot
    assert f"[{code}]" in first.snapshot


@pytest.mark.parametrize("section", [INSTEAD, NOT_A_FINDING])
@pytest.mark.parametrize("code", RULES)
def test_a_page_has_a_pipeline_without_its_code(code: str, section: str) -> None:
    blocks = [block for block in rule_pages.read(find_pages()[code]) if block.section == section]

    assert blocks, f"there is no pipeline under '## {section}'"
    assert [block.number for block in blocks if code in [mark[3] for mark in block.expected_marks]] == []


@pytest.mark.parametrize("code", RULES)
def test_a_page_ends_with_what_spark_itself_does(code: str) -> None:
    text = read_page(code) or ""

    assert parse_spark_behaviour(text) is not None, f"the last line is {text.rstrip().splitlines()[-1]!r}"


def test_every_code_of_the_catalogue_has_a_page() -> None:
    assert sorted(set(CODES) - set(find_pages())) == []


@pytest.mark.parametrize("code", find_pages())
def test_a_page_is_headed_by_what_is_wrong_and_its_code(code: str) -> None:
    assert re.fullmatch(rf"# (?:[A-Z]|--)\S*(?: \S+)+ \({code}\)", (read_page(code) or "").partition("\n")[0])


def test_no_two_pages_have_one_heading() -> None:
    headings = [(read_page(code) or "").partition("\n")[0].rpartition(" ")[0] for code in find_pages()]

    assert sorted(heading for heading in set(headings) if headings.count(heading) > 1) == []
