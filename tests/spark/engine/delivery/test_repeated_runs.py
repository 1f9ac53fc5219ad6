"""Tasks that Spark has run again by itself, whose rows a metric counts twice."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import Observation
from pyspark.sql import functions as F

from acceptance.project import until
from millstream.engine.delivery.repeated_runs import TaskReruns
from millstream.spark import internals

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

ROWS = 100


@pytest.fixture
def spool(spark: SparkSession) -> Iterator[Path]:
    """The folder in which Spark keeps the output of shuffles. The jobs of the test are those of a group."""
    spark.sparkContext.setJobGroup("watched", "")
    manager = internals.java_class(spark, "org.apache.spark.SparkEnv").get().blockManager().diskBlockManager()
    yield Path(manager.localDirs()[0].toString())
    # Spark takes an executor for lost whose shuffle output is: here the driver, which registers again by itself.
    until(lambda: internals.list_executors(spark.sparkContext), 240, "the driver is not registered")
    spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]


@pytest.mark.parametrize(("is_lost", "rows"), [(False, ROWS), (True, 2 * ROWS)])
def test_rows_count_twice_if_the_output_of_a_shuffle_is_lost(
    spark: SparkSession, spool: Path, tmp_path: Path, is_lost: bool, rows: int
) -> None:
    others, lost = set(spool.rglob("shuffle_*")), tmp_path / "lost"
    if not is_lost:
        lost.touch()

    def lose_output_once() -> None:
        if not lost.exists():
            lost.touch()
            for file in set(spool.rglob("shuffle_*")) - others:
                file.unlink()

    counted, reruns = Observation("counted"), TaskReruns.watch(spark)
    # There are more tasks after the shuffle than cores, so that some read its output after the first have ended.
    shuffled = (
        spark.range(0, ROWS, 1, 1).observe(counted, F.count(F.lit(1)).alias("rows")).repartition(20, "id")
    )
    lose = F.udf(lambda number: lose_output_once() or number, "bigint")  # type: ignore[func-returns-value]
    shuffled.select(lose("id")).write.format("noop").mode("overwrite").save()

    assert counted.get == {"rows": rows}
    assert reruns.may_count_twice("watched", is_cached=False) is is_lost
    assert not reruns.may_count_twice("another query", is_cached=False)
    assert not TaskReruns.watch(spark).may_count_twice("watched", is_cached=False)
