"""The cases in `tests/spark/cases`, which hold what Spark's own suites say of its engine."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from millstream.testing.files.loader import load
from millstream.testing.runner.execute import run_case

if TYPE_CHECKING:
    from collections.abc import Hashable

    from pyspark.sql import SparkSession

    from millstream.testing.model import Case

FILES = sorted((Path(__file__).parents[1] / "cases").glob("*.yml"))
SUITES = {file: load(file, lambda _: {}) for file in FILES}
CASES = [
    pytest.param(case, id=f"{file.stem}: {case.name}")
    for file, suite in SUITES.items()
    for case in suite.cases
]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_nothing_is_wrong_with_a_file_of_cases(file: Path) -> None:
    assert [finding.message for finding in SUITES[file].findings] == []


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_each_case_names_the_test_it_stands_for(file: Path) -> None:
    lines = file.read_text(encoding="utf-8").partition("\ntests:\n")[2].splitlines()
    above = [before for before, line in zip(["", *lines], lines, strict=False) if re.match(r"  [^ #]", line)]
    assert above
    assert all(line.startswith("  # ") for line in above)


def features(case: Case) -> set[Hashable]:
    """The file, the output mode, each action, and all that is looked at."""
    actions = {type(action).__name__ for step in case.steps for action in step.actions}
    looked_at = {
        key
        for step in case.steps
        for key, value in vars(step.expected).items()
        if value not in (None, {}, ())
    }
    mode = case.pipeline.queries[case.query].output_mode
    return {case.file.stem, mode, *actions, *looked_at}


@pytest.mark.sweep(by=features, cost=lambda case: len(case.steps))
@pytest.mark.parametrize("case", CASES)
def test_spark_gives_what_its_own_suites_say(spark: SparkSession, case: Case, tmp_path: Path) -> None:
    outcome = run_case(spark, case, tmp_path)

    assert outcome.fault is None
    assert [step_result.differences for step_result in outcome.results] == [()] * len(case.steps)
