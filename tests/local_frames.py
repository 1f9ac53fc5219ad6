"""DataFrames of a few rows that stand in the plan itself; those of a list are an RDD of pickled rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.types import StructType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession


def create_frame(spark: SparkSession, rows: Sequence[Sequence[Any]], schema: str) -> DataFrame:
    """A DataFrame of these rows; `schema` is in the words of SQL."""
    fields = StructType.fromDDL(schema)
    columns = {name: pa.array([row[at] for row in rows]) for at, name in enumerate(fields.names)}
    return spark.createDataFrame(pa.table(columns), fields)
