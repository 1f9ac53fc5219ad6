"""Run a case on Spark up to the first failed step."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from millstream.diagnostics.failure import MillstreamError
from millstream.testing.harness.harness import Harness
from millstream.testing.harness.manual_clock import LIMIT
from millstream.testing.model import Advance, Crash, Feed, Outcome, Restart
from millstream.testing.runner.compare import find_differences

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from millstream.testing.model import Case, Step, StepResult


def run_case(
    spark: SparkSession, case: Case, folder: Path, *, on: bool = False, limit: float = LIMIT
) -> Outcome:
    """Run a case and return its outcome. `folder` is used by this case alone; `limit` is in seconds per batch.

    With `on`, all steps run even after a failed one. A `MillstreamError` is not raised; it is the outcome's `fault`.
    """
    started = time.perf_counter()
    results: list[StepResult] = []
    fault = None
    try:
        with Harness(spark, case, folder, limit=limit) as harness:
            run_steps(harness, case, results, on=on)
    except MillstreamError as error:
        fault = describe_error(error)
    return Outcome(case, tuple(results), time.perf_counter() - started, fault)


def describe_error(error: MillstreamError) -> str:
    """Return the text of an error for the `fault` of an outcome."""
    return f"{error.what}; {error.fix}" if error.fix else error.what


def run_steps(harness: Harness, case: Case, results: list[StepResult], *, on: bool) -> None:
    """Run the steps of a case in a harness, and append the result of each to `results`."""
    for step in case.steps:
        run_actions(harness, step)
        result = harness.run_step(step)
        results.append(replace(result, differences=find_differences(step.expected, result, case)))
        if results[-1].differences and not on:
            break


def run_actions(harness: Harness, step: Step) -> None:
    """Run the actions of a step in their order. A crash and a feed in one step are one batch."""
    crash = next((action.at for action in step.actions if isinstance(action, Crash)), None)
    has_feed = any(isinstance(action, Feed) for action in step.actions)
    for action in step.actions:
        match action:
            case Feed(rows):
                harness.feed(rows, crash)
            case Crash(at):
                if not has_feed:
                    harness.crash(at)
            case Restart(pipeline):
                harness.restart(pipeline)
            case Advance(by):
                harness.advance(by)
