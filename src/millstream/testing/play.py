"""Play a case on Spark, up to the first step that gives something else than it expects."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from millstream.diagnostics.failure import MillstreamError
from millstream.testing.case import Advance, Crash, Feed, Outcome, Restart
from millstream.testing.judge import differences
from millstream.testing.stage import Stage
from millstream.testing.strand import LIMIT

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from millstream.testing.case import Case, Played, Step


def play(spark: SparkSession, case: Case, folder: Path, *, on: bool = False, limit: float = LIMIT) -> Outcome:
    """What becomes of a case. `folder` is its own; `limit` is how many seconds one batch may take.

    With `on` it is played to its last step, whatever differs before. Never raises what a person can cure: that is
    the outcome's `fault`.
    """
    began = time.perf_counter()
    played: list[Played] = []
    fault = None
    try:
        with Stage(spark, case, folder, limit=limit) as stage:
            through(stage, case, played, on=on)
    except MillstreamError as wrong:
        fault = told(wrong)
    return Outcome(case, tuple(played), time.perf_counter() - began, fault)


def told(wrong: MillstreamError) -> str:
    """What an outcome says of a case that could not be played."""
    return f"{wrong.what}; {wrong.fix}" if wrong.fix else wrong.what


def through(stage: Stage, case: Case, played: list[Played], *, on: bool) -> None:
    """Play a case's steps on a stage, and add what came of each to `played`."""
    for step in case.steps:
        act(stage, step)
        one = stage.played(step)
        played.append(replace(one, differences=differences(step.expected, one, case)))
        if played[-1].differences and not on:
            break


def act(stage: Stage, step: Step) -> None:
    """Do what a step does, in its order; a crash and a feed in one step are one batch."""
    crash = next((action.at for action in step.actions if isinstance(action, Crash)), None)
    fed = any(isinstance(action, Feed) for action in step.actions)
    for action in step.actions:
        match action:
            case Feed(rows):
                stage.feed(rows, crash)
            case Crash(at):
                if not fed:
                    stage.crash(at)
            case Restart(pipeline):
                stage.restart(pipeline)
            case Advance(by):
                stage.advance(by)
