"""Play tests one after the other in one Spark session, which starts when the first is played."""

from __future__ import annotations

import sys
from contextlib import contextmanager, redirect_stdout
from typing import TYPE_CHECKING, Any, Self

from millstream.testing.results import Result, result

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pyspark.sql import SparkSession

    from millstream.testing.case import Case, Outcome


class Runner:
    """Plays tests. A context manager; a session that ran before stays."""

    def __init__(self, say: Callable[[str], None] = lambda _: None) -> None:
        self.say = say
        self._spark: SparkSession | None = None
        self._own = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._spark is not None and self._own:
            from pyspark import SparkContext  # noqa: PLC0415 - as below

            from millstream.runtime.session import stop  # noqa: PLC0415 - as below

            # Somebody else may have ended it: a fixture of a suite that shares it.
            if SparkContext._active_spark_context is not None:
                stop(self._spark)
        self._spark = None

    def spark(self, cases: Iterable[Case] = ()) -> SparkSession:
        """The session, started with the settings of these tests' pipelines where it does not run yet.

        Raises `NotReady` when Java or a jar is missing.
        """
        if self._spark is None:
            # Here and not above: reading tests needs no Spark.
            from pyspark import SparkContext  # noqa: PLC0415

            from millstream.testing.session import open_tests  # noqa: PLC0415
            from millstream.testing.warming import warm  # noqa: PLC0415

            self.say("starting Spark")
            self._own = SparkContext._active_spark_context is None
            conf: dict[str, Any] = {}
            for case in cases:
                conf = {**case.pipeline.spark, **conf}
            self._spark = open_tests(conf)
            if self._own:
                warm(self._spark)
        return self._spark

    def play(self, case: Case, *, on: bool = False) -> Outcome:
        """What becomes of one test, up to the first step that differs; `on` goes on to its last."""
        spark = self.spark([case])
        from millstream.testing.play import play  # noqa: PLC0415 - as above
        from millstream.testing.session import case_folder  # noqa: PLC0415 - as above

        # A sink that prints would do so between the results, and into what a program reads.
        with case_folder() as folder, redirect_stdout(sys.stderr):
            return play(spark, case, folder, on=on)

    @contextmanager
    def replaying(self, case: Case) -> Iterator[Callable[[Case], Outcome]]:
        """What plays a case and others that differ from it in their steps, on one stage."""
        spark = self.spark([case])
        from millstream.testing.replay import Replay  # noqa: PLC0415 - as above
        from millstream.testing.session import case_folder  # noqa: PLC0415 - as above

        with case_folder() as folder, Replay(spark, folder) as replay:

            def played(given: Case) -> Outcome:
                with redirect_stdout(sys.stderr):
                    return replay.play(given)

            yield played

    def all(
        self,
        cases: list[Case],
        *,
        stop: bool = False,
        tell: Callable[[Result, Outcome], None] = lambda *_: None,
    ) -> list[Result]:
        """The results of tests in their order; with `stop`, up to the first that fails."""
        if cases:
            self.spark(cases)
        found: list[Result] = []
        for number, case in enumerate(cases, 1):
            self.say(f"{number}/{len(cases)} {case.name}")
            outcome = self.play(case)
            found.append(result(outcome))
            tell(found[-1], outcome)
            if stop and not outcome.passed:
                break
        return found
