"""Run tests one after the other in one Spark session, which starts with the first test."""

from __future__ import annotations

import sys
from contextlib import contextmanager, redirect_stdout
from typing import TYPE_CHECKING, Any, Self

from millstream.spark import internals
from millstream.testing.runner.results import Result, to_result

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from pyspark.sql import SparkSession

    from millstream.testing.model import Case, Outcome


class Runner:
    """Runs tests. A context manager; a Spark session that was already active is not stopped."""

    def __init__(self, say: Callable[[str], None] = lambda _: None) -> None:
        self.say = say
        self._spark: SparkSession | None = None
        self._is_own = False
        self._is_warm = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._spark is not None and self._is_own:
            from millstream.spark.session import stop_session  # noqa: PLC0415 - as below

            # A fixture of a suite that shares the session may have stopped it.
            if internals.active_context() is not None:
                stop_session(self._spark)
        self._spark = None

    def spark(self, cases: Iterable[Case] = ()) -> SparkSession:
        """Return the session. Start it with the settings of these tests' pipelines if it is not active.

        Raises `NotReady` if Java or a jar is missing.
        """
        spark = self.start(
            {key: value for case in reversed([*cases]) for key, value in case.pipeline.spark.items()}
        )
        if self._is_own and not self._is_warm:
            from millstream.testing.runner.warm_up import warm  # noqa: PLC0415 - parsing tests needs no Spark

            self._is_warm = True
            warm(spark)
        return spark

    def start(self, conf: Mapping[str, Any]) -> SparkSession:
        """Return the session, started with these settings if it is not active. No test has run in it yet."""
        if self._spark is None:
            from millstream.testing.harness.session import open_tests  # noqa: PLC0415 - as above

            self.say("starting Spark")
            self._is_own = internals.active_context() is None
            self._spark = open_tests(conf)
        return self._spark

    def play(self, case: Case, *, on: bool = False) -> Outcome:
        """Run one test up to its first failed step; with `on`, to its last step."""
        spark = self.spark([case])
        from millstream.testing.harness.session import create_case_folder  # noqa: PLC0415 - as above
        from millstream.testing.runner.execute import run_case  # noqa: PLC0415 - as above

        # Keeps the output of a console sink out of the results, which programs may read from stdout.
        with create_case_folder() as folder, redirect_stdout(sys.stderr):
            return run_case(spark, case, folder, on=on)

    @contextmanager
    def open_replay(self, case: Case) -> Iterator[Callable[[Case], Outcome]]:
        """Return a function that runs a case, and others with different steps, in one harness."""
        spark = self.spark([case])
        from millstream.testing.harness.session import create_case_folder  # noqa: PLC0415 - as above
        from millstream.testing.runner.execute_shared import SplitReplay  # noqa: PLC0415 - as above

        with create_case_folder() as folder, SplitReplay(spark, folder) as replay:

            def run(other_case: Case) -> Outcome:
                with redirect_stdout(sys.stderr):
                    return replay.play(other_case)

            yield run

    def all(
        self,
        cases: list[Case],
        *,
        stop: bool = False,
        report: Callable[[Result, Outcome], None] = lambda *_: None,
    ) -> list[Result]:
        """Run tests in their order and return their results; with `stop`, up to the first that fails."""
        if cases:
            self.spark(cases)
        results: list[Result] = []
        for number, case in enumerate(cases, 1):
            self.say(f"{number}/{len(cases)} {case.name}")
            outcome = self.play(case)
            results.append(to_result(outcome))
            report(results[-1], outcome)
            if stop and not outcome.has_passed:
                break
        return results
