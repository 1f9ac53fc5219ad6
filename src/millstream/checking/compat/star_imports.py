"""What scripts import from `pyspark.sql.functions` in Spark 3, and no longer in Spark 4."""

from __future__ import annotations

import pyspark
from pyspark.sql import DataFrame, functions

# Spark 3 exports every function of the module. Spark 4 lists what it exports, without these deprecated ones.
ONLY_IN_SPARK_3 = frozenset(
    {
        "approxCountDistinct", "bitwiseNOT", "countDistinct", "shiftLeft", "shiftRight", "shiftRightUnsigned",
        "sumDistinct", "toDegrees", "toRadians",
    }
)  # fmt: skip


def list_exports_of_spark_3() -> list[str]:
    """Return what the module exports, together with what it exported before."""
    return [*functions.__all__, *sorted(ONLY_IN_SPARK_3.difference(functions.__all__))]


def list_classes_of_spark_3() -> dict[str, object]:
    """Return what only the module of Spark 3 imports for itself, by the names that scripts import from it."""
    return {"DataFrame": DataFrame, "SparkContext": pyspark.SparkContext, "since": pyspark.since}
