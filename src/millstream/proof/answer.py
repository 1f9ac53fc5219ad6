"""The batch answer over the input of a proof, with and without the rows that close its windows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from millstream.proof.rows import FAR
from millstream.runtime.batch.answer import answers as over

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from millstream.pipeline.model import Pipeline, SourceEntry


def answers(spark: SparkSession, pipeline: Pipeline, *, closed: bool) -> dict[str, DataFrame]:
    """Each query's rows as a batch gives them; without the rows that close windows unless `closed`."""

    def reader(name: str, entry: SourceEntry) -> DataFrame:
        raw = entry.source.read(spark, static=True, schema=entry.ddl)
        return raw if closed or pipeline.sources[name].static else raw.where(~_far(raw))

    return over(spark, pipeline, reader)


def _far(raw: DataFrame) -> Column:
    """Is it one of the rows that close windows?"""
    if "value" in raw.columns and dict(raw.dtypes)["value"] == "binary":
        return F.coalesce(F.contains(F.col("value").cast("string"), F.lit(FAR)), _no())
    times = [name for name, kind in raw.dtypes if kind.startswith("timestamp")]
    far = _no()
    for name in times:
        far = far | F.coalesce(F.year(F.col(f"`{name}`")) >= int(FAR[:4]) - 1, _no())
    return far


def _no() -> Column:
    return F.expr("false")
