"""Functions of a user, row by row and in columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd  # noqa: TC002 - Spark reads the hints of a function in columns
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame


@F.udf(returnType="double", useArrow=True)
def fahrenheit(celsius: float) -> float:
    return celsius * 9 / 5 + 32


@F.pandas_udf("double")  # type: ignore[call-overload,untyped-decorator]
def fahrenheits(celsius: pd.Series) -> pd.Series:
    return celsius * 9 / 5 + 32


def functions(readings: DataFrame) -> DataFrame:
    return readings.select("sensor", fahrenheit("celsius").alias("fahrenheit"))


def by_arrow(readings: DataFrame) -> DataFrame:
    def upper(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield batch.set_column(0, "sensor", pc.utf8_upper(batch["sensor"]))

    rows = readings.select("sensor", fahrenheits("celsius").alias("fahrenheit"))
    return rows.mapInArrow(upper, "sensor STRING, fahrenheit DOUBLE")
