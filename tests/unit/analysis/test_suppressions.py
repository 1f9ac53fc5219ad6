"""Comments that allow a finding."""

from __future__ import annotations

from pathlib import Path

import pytest

from millstream.analysis.rule_runner import check_spec
from millstream.pipeline.spec_file import load_text

SPEC = """name: shop
sources:
  ticks: {{rate: 1}}
  spare: {{rate: 1}}  {comment}
queries:
  ticks: {{to: {{console: {{}}}}}}
"""


def codes(comment: str) -> list[str]:
    loaded = load_text("pipeline.yml", SPEC.format(comment=comment), Path("nowhere"), {})
    return [finding.code for finding in check_spec(loaded)]


def test_without_a_comment_the_finding_stands() -> None:
    assert codes("") == ["MS106"]


def test_a_comment_with_a_reason_allows_the_finding_of_its_line() -> None:
    assert codes("# millstream: allow MS106 — read by hand in notebooks") == []


@pytest.mark.parametrize("comment", ["# millstream: allow MS106", "# millstream: allow MS106 —"])
def test_without_a_reason_nothing_is_allowed(comment: str) -> None:
    assert sorted(codes(comment)) == ["MS091", "MS106"]


def test_an_allow_that_allows_nothing_is_a_finding() -> None:
    assert sorted(codes("# millstream: allow MS107 — old")) == ["MS091", "MS106"]


def test_a_comment_on_the_line_above_counts() -> None:
    text = SPEC.format(comment="").replace("  spare", "  # millstream: allow MS106 - by hand\n  spare")

    assert check_spec(load_text("pipeline.yml", text, Path("nowhere"), {})) == []


def test_a_statement_that_is_no_query_is_never_allowed() -> None:
    spec = SPEC.replace("queries:", "views:\n  gone: DROP TABLE t  {comment}\nqueries:", 1)
    comment = "# millstream: allow MS104 — we want it gone"
    loaded = load_text("pipeline.yml", spec.format(comment=comment), Path("nowhere"), {})

    assert "MS104" in [finding.code for finding in check_spec(loaded)]
