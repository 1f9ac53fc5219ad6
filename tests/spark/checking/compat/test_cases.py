"""Our verdict, Spark's own `start()` and the table of cases agree, word for word.

Spark's suite builds plans by hand, with nodes that no call of PySpark makes: Scala's functions with state, its
cogroup, typed filters and commands inside a plan. Those cases are counted in `INEXPRESSIBLE`; `twins` has Python's
own functions with state in their place. A case that the suite wraps in a stream is joined to one here. Cases of the
suite that ask one check only are built so that the others have nothing to say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PySparkException

from millstream.checking.compat import error_hints, error_parser
from millstream.checking.compat.start_check import find_batch_refusal, find_refusal
from spark.checking.compat.cases import INEXPRESSIBLE, SUITE, Case, Frames, cases
from spark.checking.compat.twins import twins

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

ALL = [*cases(), *twins()]


@pytest.fixture(scope="module")
def frames(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Frames:
    return Frames.of(spark, str(tmp_path_factory.mktemp("empty")))


def started(frame: DataFrame, case: Case, checkpoint: Path) -> str:
    """What Spark says when it is really done; empty when it starts."""
    try:
        if case.as_table:
            frame.collect()
        else:
            writer = frame.writeStream.format("noop").outputMode(case.mode)
            writer.option("checkpointLocation", str(checkpoint)).start().stop()
    except PySparkException as error:
        return error_parser.full_message(error)
    return ""


@pytest.mark.parametrize("case", ALL, ids=[case.sense for case in ALL])
def test_our_verdict_and_sparks_start_and_the_table_agree(
    frames: Frames, checkpoint: Path, case: Case
) -> None:
    frame = case.plan(frames)
    refusal = find_batch_refusal(frame) if case.as_table else find_refusal(frame, case.mode)

    spark_says = started(frame, case, checkpoint)

    text = refusal.text if refusal else ""
    assert text == spark_says
    assert (bool(text), case.refused in text) == (bool(case.refused), True)
    assert refusal is None or error_hints.find_hint(refusal.why)


def test_the_counts_are_those_of_the_suite() -> None:
    actual = list(cases())

    assert len(actual) + sum(INEXPRESSIBLE.values()) == SUITE
    assert (len(actual), sum(bool(case.refused) for case in actual)) == (151, 51)
    assert len({case.sense for case in ALL}) == len(ALL)
