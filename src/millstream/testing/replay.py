"""Play cases that differ in their steps alone on one stage: what they share is made once."""

from __future__ import annotations

import shutil
import time
from typing import TYPE_CHECKING, Self

from millstream.diagnostics.failure import MillstreamError
from millstream.testing.case import Outcome
from millstream.testing.play import play, through, told
from millstream.testing.stage import Stage

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from millstream.testing.case import Case, Played


class Replay:
    """Plays the splits of a case. A context manager; `folder` is its own.

    The session, the sources and the views of the first case serve all that fit it; each is played from an empty
    checkpoint. Another case, such as one of another version of the pipeline, has a stage of its own.
    """

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark = spark
        self._folder = folder
        self._stage: Stage | None = None
        self._many = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def play(self, case: Case) -> Outcome:
        """What becomes of a case, up to its last step."""
        self._many += 1
        folder = self._folder / str(self._many)
        try:
            if self._stage is not None and not self._stage.fits(case):
                return play(self._spark, case, folder, on=True)
            return self._played(case, folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _played(self, case: Case, folder: Path) -> Outcome:
        began = time.perf_counter()
        played: list[Played] = []
        fault = None
        try:
            stage = self._at(case, folder)
            through(stage, case, played, on=True)
            # Nothing may write below the folder any more: it goes.
            stage.rest()
        except MillstreamError as wrong:
            fault = told(wrong)
            # What does not end is left behind with its stage.
            self._close()
        return Outcome(case, tuple(played), time.perf_counter() - began, fault)

    def _at(self, case: Case, folder: Path) -> Stage:
        """The stage, with nothing on it."""
        if self._stage is None:
            stage = Stage(self._spark, case, folder)
            stage.__enter__()
            self._stage = stage
        else:
            self._stage.again(case, folder)
        return self._stage

    def _close(self) -> None:
        stage, self._stage = self._stage, None
        if stage is not None:
            stage.__exit__()
