"""The tests that pages show are played, and pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from millstream.testing.load import load_text
from millstream.testing.play import play
from millstream.testing.report import report
from page_blocks import ROOT, shown_tests

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.mark.parametrize(("page", "text"), list(shown_tests()))
def test_what_a_page_shows_passes(page: Path, text: str, spark: SparkSession, tmp_path: Path) -> None:
    # A test without a pipeline of its own stands in a project; on a page that is of none, it is the shop's.
    own = (page.parent / "pipeline.yml").is_file()
    folder = page.parent if own else ROOT / "examples" / "ecommerce"

    cases = load_text("page.yml", text, folder / "tests" / "page.yml", lambda _: {}).cases

    assert cases
    for number, case in enumerate(cases):
        outcome = play(spark, case, tmp_path / str(number))
        assert outcome.passed, report(outcome)
