"""Compute the batch result over the input of a proof, with and without the rows that close its windows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from millstream.engine.batch.batch_run import compute_batch_results as over
from millstream.proof.rows import FAR, FAR_YEAR

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from millstream.pipeline.model import Pipeline, SourceEntry


def compute_batch_results(spark: SparkSession, pipeline: Pipeline, *, closed: bool) -> dict[str, DataFrame]:
    """Return each query's rows as computed by a batch; without the rows that close windows unless `closed`."""

    def reader(name: str, entry: SourceEntry) -> DataFrame:
        raw = entry.source.read(spark, static=True, schema=entry.ddl)
        return raw if closed or pipeline.sources[name].static else raw.where(~_closes_windows(raw))

    return over(spark, pipeline, reader)


def _closes_windows(raw: DataFrame) -> Column:
    """Return the condition for rows that close windows."""
    if "value" in raw.columns and dict(raw.dtypes)["value"] == "binary":
        parts = [F.col(name).cast("string") for name in ("value", "key") if name in raw.columns]
        return F.contains(F.concat_ws(" ", *parts), F.lit(FAR))
    time_columns = [name for name, kind in raw.dtypes if kind.startswith("timestamp")]
    is_far = _false()
    for name in time_columns:
        is_far = is_far | F.coalesce(F.year(F.col(f"`{name}`")) >= FAR_YEAR, _false())
    return is_far


def _false() -> Column:
    return F.expr("false")
