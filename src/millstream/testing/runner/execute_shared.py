"""Run cases that differ only in their steps in one harness, so that shared setup happens once."""

from __future__ import annotations

import shutil
import time
from typing import TYPE_CHECKING, Self

from millstream.diagnostics.failure import MillstreamError
from millstream.testing.harness.harness import Harness
from millstream.testing.model import Outcome
from millstream.testing.runner.execute import describe_error, run_case, run_steps

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from millstream.testing.model import Case, StepResult


class SplitReplay:
    """Runs the splits of a case in one harness. A context manager; `folder` is used by it alone.

    Cases that fit the first case share its session, sources and views; each starts from an empty checkpoint. Any
    other case, for example one with another version of the pipeline, gets its own harness.
    """

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark = spark
        self._folder = folder
        self._harness: Harness | None = None
        self._count = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def play(self, case: Case) -> Outcome:
        """Run a case to its last step and return its outcome."""
        self._count += 1
        folder = self._folder / str(self._count)
        try:
            if self._harness is not None and not self._harness.can_reuse(case):
                return run_case(self._spark, case, folder, on=True)
            return self._run(case, folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _run(self, case: Case, folder: Path) -> Outcome:
        started = time.perf_counter()
        results: list[StepResult] = []
        fault = None
        try:
            harness = self._prepare_harness(case, folder)
            run_steps(harness, case, results, on=True)
            # The folder is deleted next, so nothing may write below it.
            harness.stop()
        except MillstreamError as error:
            fault = describe_error(error)
            # A query that does not stop is abandoned with its harness.
            self._close()
        return Outcome(case, tuple(results), time.perf_counter() - started, fault)

    def _prepare_harness(self, case: Case, folder: Path) -> Harness:
        """Return the harness, reset for a case."""
        if self._harness is None:
            harness = Harness(self._spark, case, folder)
            harness.__enter__()
            self._harness = harness
        else:
            self._harness.reuse_for(case, folder)
        return self._harness

    def _close(self) -> None:
        harness, self._harness = self._harness, None
        if harness is not None:
            harness.__exit__()
