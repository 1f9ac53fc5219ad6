"""The test files of the examples: they pass, and each example's say what happens to the rows that hurt."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from millstream.testing.files.loader import load
from millstream.testing.model import Crash
from millstream.testing.runner.execute import run_case

if TYPE_CHECKING:
    from collections.abc import Hashable

    from pyspark.sql import SparkSession

    from millstream.testing.model import Case

EXAMPLES = Path(__file__).parents[3] / "examples"
NAMES = sorted(path.parent.name for path in EXAMPLES.glob("*/pipeline.yml"))
SUITES = {
    name: [load(file, lambda _: {}) for file in sorted((EXAMPLES / name / "tests").glob("*.yml"))]
    for name in NAMES
}
CASES = [
    pytest.param(case, id=f"{name}: {case.name}")
    for name, suites in SUITES.items()
    for suite in suites
    for case in suite.cases
]


def cases(example: str) -> list[Case]:
    """All cases of an example."""
    return [case for suite in SUITES[example] for case in suite.cases]


def features(case: Case) -> set[Hashable]:
    """Each example; crashes, restarts and waits; what is read; each mode, and each writer.

    Each writer repeats batches in each mode in tests/conformance.
    """
    example = case.file.parent.parent.name
    query, sources = case.pipeline.queries[case.query], case.pipeline.sources.values()
    return {
        example,
        *(
            (type(action).__name__, getattr(action, "at", None))
            for step in case.steps
            for action in step.actions
        ),
        *(("from", source.source.kind) for source in sources),
        ("in", query.output_mode),
        *(("to", entry.sink.kind) for entry in query.to if case.has_real_sinks),
    }


@pytest.mark.sweep(by=features, cost=lambda case: len(case.steps) * (3 if case.has_real_sinks else 1))
@pytest.mark.parametrize("case", CASES)
def test_a_case_of_an_example_passes(spark: SparkSession, case: Case, tmp_path: Path) -> None:
    outcome = run_case(spark, case, tmp_path)

    assert outcome.fault is None
    assert [step_result.differences for step_result in outcome.results] == [()] * len(case.steps)


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_wrong_with_the_test_files_of_an_example(name: str) -> None:
    assert [finding.message for suite in SUITES[name] for finding in suite.findings] == []


@pytest.mark.parametrize("name", NAMES)
def test_an_example_with_a_watermark_says_what_becomes_of_a_late_row(name: str) -> None:
    waits = any(source.watermark for case in cases(name) for source in case.pipeline.sources.values())
    dropped = {step.expected.dropped for case in cases(name) for step in case.steps}

    assert (1 in dropped) is waits
    assert 0 in dropped


@pytest.mark.parametrize("name", NAMES)
def test_an_example_says_what_a_crash_behind_its_real_sinks_leaves(name: str) -> None:
    points = {
        action.at
        for case in cases(name)
        if case.has_real_sinks
        for step in case.steps
        for action in step.actions
        if isinstance(action, Crash)
    }

    assert "after_sink" in points


@pytest.mark.parametrize("name", NAMES)
def test_an_example_that_reads_messages_says_what_becomes_of_a_broken_one(name: str) -> None:
    reads = any(
        source.source.has_payload for case in cases(name) for source in case.pipeline.sources.values()
    )
    letters = [step.expected.letters for case in cases(name) for step in case.steps if step.expected.letters]

    # One that reads files may say it too: a row without its event time is broken there as well.
    assert letters or not reads
