"""Dead letters in a metric: the driver puts their text together while other queries of the source do the same."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from millstream.frames.expectations import json_array

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS, READS = 2000, 60


def observed(spark: SparkSession) -> DataFrame:
    row = F.struct(F.col("id"), F.concat(F.lit('a "quoted" żółw '), F.col("id")).alias("value"))
    return spark.range(ROWS).observe("letters", json_array(row, F.col("id") % 2 == 1, ROWS).alias("json"))


def run(frame: DataFrame) -> Any:
    execution = frame._jdf.queryExecution()
    execution.executedPlan().executeCollect()
    return execution


def read(execution: Any) -> Any:
    return json.loads(execution.observedMetrics().get("letters").get().getAs("json"))


def test_two_queries_that_share_a_source_read_their_letters_at_the_same_time(spark: SparkSession) -> None:
    shared = observed(spark)
    executions = [run(shared.where(condition)) for condition in ("id >= 0", "id > -1")]

    with ThreadPoolExecutor(len(executions)) as threads:
        reads = [threads.submit(read, execution) for execution in executions * READS]

    for item in reads:
        letters = item.result()
        assert {letter["id"] for letter in letters} == set(range(1, ROWS, 2))
        assert all(letter["value"] == f'a "quoted" żółw {letter["id"]}' for letter in letters)
