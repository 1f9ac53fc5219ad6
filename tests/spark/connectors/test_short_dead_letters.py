"""Dead letters of short records: the other columns of the table take more memory than the records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.test_letters import FULL
from delta_letters import writer_of
from millstream.connectors.api.dead_letters import COLUMNS
from millstream.connectors.delta.dead_letter_table import read_rows
from millstream.spec.location import Location
from result_limit import limited_results

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


def test_letters_that_exceed_the_drivers_limit_are_written_by_tasks(
    spark: SparkSession, tmp_path: Path
) -> None:
    columns = spark.createDataFrame([], COLUMNS).columns
    letters = spark.createDataFrame([tuple(FULL[name] for name in columns)], COLUMNS).drop("offset")
    many = letters.crossJoin(spark.range(2_000).withColumnRenamed("id", "offset")).select(*columns)
    writer = writer_of(tmp_path / "letters")

    with limited_results(spark, "30k"):
        was_new = [writer.keep(many, 0, 10) for _ in range(2)]
        writer.keep(many.limit(1), 1, 10)
    writer.close()

    assert was_new == [True, False]
    assert sorted(letter.offset for letter in read_rows(Location(tmp_path / "letters"))) == sorted(
        [0, *range(2_000)]
    )
