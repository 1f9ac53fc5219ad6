"""A custom aggregate: the mean of the middle of a sensor's readings, which one wild value cannot move."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@F.udf(returnType="double", useArrow=True)
def trimmed_mean(values: list[float]) -> float | None:
    """The mean without the lowest and the highest fifth; NULL of no values."""
    cut = len(values) // 5
    kept = sorted(values)[cut : len(values) - cut]
    return sum(kept) / len(kept) if kept else None


def typical(readings: DataFrame) -> DataFrame:
    """For each sensor and ten minutes: `window_start`, `sensor_id`, `readings` and `typical_value`.

    Spark keeps the values of a window in its state, `collect_list`, and calls the function on them at the end.
    """
    collected = readings.groupBy(F.window("event_time", "10 minutes"), "sensor_id").agg(
        F.collect_list("value").alias("values")
    )
    return collected.select(
        F.col("window.start").alias("window_start"),
        "sensor_id",
        F.size("values").alias("readings"),
        trimmed_mean("values").alias("typical_value"),
    )
