from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from millstream.cli.dev.changes import describe_case, describe_entries, find_changed_view
from millstream.testing.files.loader import load_text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from millstream.pipeline.model import Pipeline
    from millstream.testing.model import Case

SPEC = """pipeline:
  name: shop
  sources:
    orders: {rate: {rows_per_second: 1}}
    visits: {rate: {rows_per_second: 1}}
  views:
    big: "SELECT * FROM orders WHERE value > 7"
    doubled: "SELECT value * 2 AS value FROM big"
    recent: {python: "functions:recent"}
  queries:
    doubled: {from: doubled, to: {console: {}}}
    visits: {from: visits, to: {console: {}}}
    recent: {from: recent, to: {console: {}}}
tests:
  doubled:
    query: doubled
    steps: [{feed: {orders: [{value: 8}]}, expect: [{value: 16}]}]
  visited:
    query: visits
    steps: [{feed: {visits: [{value: 8}]}, expect: [{value: 8}]}]
  was recent:
    query: recent
    steps: [{feed: {visits: [{value: 8}]}, expect: [{value: 8}]}]
"""
PYTHON = "def recent(visits):\n    return visits\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "functions.py").write_text(PYTHON)
    return tmp_path


def load_cases(folder: Path, text: str = SPEC) -> Sequence[Case]:
    suite = load_text("all.yml", text, folder / "all.yml", lambda _: {})
    assert not suite.findings
    return suite.cases


def affected(folder: Path, text: str = SPEC, python: str = "") -> list[str]:
    """The names of the tests that are run again when the file has another text."""
    known = {describe_case(case, "") for case in load_cases(folder)}
    return [case.name for case in load_cases(folder, text) if describe_case(case, python) not in known]


def changed(folder: Path, text: str, shown: str | None = None) -> str | None:
    before, after = load_cases(folder)[0].pipeline, load_cases(folder, text)[0].pipeline
    return find_changed_view(after, describe_entries(before, ""), describe_entries(after, ""), shown)


def test_a_comment_affects_no_test(folder: Path) -> None:
    assert affected(folder, f"# the shop\n\n{SPEC}") == []


def test_a_test_is_affected_by_views_that_its_query_reads_and_by_no_others(folder: Path) -> None:
    assert affected(folder, SPEC.replace("> 7", "> 6")) == ["doubled"]


def test_a_test_is_affected_by_its_own_text_alone(folder: Path) -> None:
    assert affected(folder, SPEC.replace("value: 16", "value: 17")) == ["doubled"]
    assert affected(folder, SPEC.replace("{visits: [{value: 8}]}", "{visits: [{value: 9}]}", 1)) == [
        "visited"
    ]


def test_a_saved_python_file_affects_the_tests_of_views_in_python(folder: Path) -> None:
    assert affected(folder, python="functions.py, later") == ["was recent"]


def test_a_setting_of_spark_affects_all_tests(folder: Path) -> None:
    text = SPEC.replace("  sources:", "  spark: {spark.sql.ansi.enabled: false}\n  sources:", 1)

    assert affected(folder, text) == ["doubled", "visited", "was recent"]


@pytest.mark.parametrize(
    ("before", "after", "view"),
    [
        ("> 7", "> 6", "big"),
        ("value * 2", "value * 3", "doubled"),
        ("orders: {rate: {rows_per_second: 1}}", "orders: {rate: {rows_per_second: 2}}", "big"),
        ("    query: visits", "    query: visits ", "recent"),
    ],
    ids=["its SQL", "the SQL of a later view", "a source", "nothing"],
)
def test_the_view_that_changed_is_shown(folder: Path, before: str, after: str, view: str) -> None:
    assert changed(folder, SPEC.replace(before, after), shown="recent") == view


def test_the_view_of_the_first_query_is_shown_at_the_start(folder: Path) -> None:
    pipeline: Pipeline = load_cases(folder)[0].pipeline

    assert find_changed_view(pipeline, {}, describe_entries(pipeline, ""), None) == "doubled"


def test_a_view_that_is_no_more_is_not_shown(folder: Path) -> None:
    assert changed(folder, SPEC, shown="deleted") == "doubled"
