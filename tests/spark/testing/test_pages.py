"""The tests that pages show are played, and pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from millstream.testing.files.loader import load_text
from millstream.testing.runner.execute import run_case
from millstream.testing.runner.failure_report import format_report
from page_blocks import project_of, shown_tests

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


# The tutorial's are about a project that its reader has changed; tests/examples changes it so, and plays them.
PLAYED = [block for block in shown_tests() if block.values[0].parent.name != "tutorial"]


@pytest.mark.parametrize(("page", "text"), PLAYED)
def test_what_a_page_shows_passes(page: Path, text: str, spark: SparkSession, tmp_path: Path) -> None:
    cases = load_text("page.yml", text, project_of(page) / "tests" / "page.yml", lambda _: {}).cases

    assert cases
    for number, case in enumerate(cases):
        outcome = run_case(spark, case, tmp_path / str(number))
        assert outcome.has_passed, format_report(outcome)
