"""What real-time mode says of a query's operators in its first batch is said before, word for word."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.errors import StreamingQueryException

from millstream.checking.compat.start_check import find_refusal
from millstream.spec.output_mode import OutputMode
from millstream.spec.trigger import Trigger

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from conftest import Broker


def counted(rows: DataFrame) -> DataFrame:
    return rows.groupBy("key").count()


def distinct(rows: DataFrame) -> DataFrame:
    return rows.dropDuplicates(["key"])


def mapped(rows: DataFrame) -> DataFrame:
    return rows.select("value").mapInPandas(lambda batches: batches, "value BINARY")


@pytest.mark.parametrize("plan", [counted, distinct, mapped])
def test_an_operator_that_real_time_mode_has_not_is_named_as_spark_names_it(
    spark: SparkSession, broker: Broker, checkpoint: Path, plan: Callable[[DataFrame], DataFrame]
) -> None:
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", broker.address)
    frame = plan(reader.option("subscribe", broker.topic()).load())

    refusal = find_refusal(frame, OutputMode.UPDATE, Trigger(real_time="5 seconds"), "console")

    writer = frame.writeStream.format("console").outputMode("update").trigger(realTime="5 seconds")
    query = writer.option("checkpointLocation", str(checkpoint)).start()
    with pytest.raises(StreamingQueryException) as ended:
        query.awaitTermination(60)
    assert refusal is not None
    assert refusal.text in str(ended.value)
