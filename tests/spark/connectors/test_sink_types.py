"""What sinks say of types without Spark is what Spark says when it writes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PySparkException

from millstream.connectors.registry import sinks

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.usefixtures("compiled")

VALUES = {
    "interval": "make_interval(1, 2)",
    "interval day to second": "INTERVAL '1 02:03:04' DAY TO SECOND",
    "time(6)": "TIME'01:02:03'",
    "void": "NULL",
    "binary": "binary('a')",
    "variant": "parse_json('1')",
    "timestamp_ntz": "TIMESTAMP_NTZ'2020-01-01 00:00:00'",
    "struct<a:int>": "named_struct('a', 1)",
    "struct<a:interval>": "named_struct('a', make_interval(1))",
    "array<void>": "array(NULL)",
    "array<variant>": "array(parse_json('1'))",
    "map<string,int>": "map('a', 1)",
}


@pytest.mark.parametrize("kind", ["parquet", "orc", "json", "csv", "text", "delta"])
def test_a_sink_refuses_the_types_that_spark_does_not_write(
    kind: str, spark: SparkSession, tmp_path: Path
) -> None:
    alone = kind == "text"
    refusal, failed = set(), set()
    for number, (ddl, value) in enumerate(VALUES.items()):
        columns = {"c": ddl} if alone else {"id": "int", "c": ddl}
        if sinks()[kind].model_validate({"path": "t"}).refuses(columns):
            refusal.add(ddl)
        try:
            frame = spark.sql(f"SELECT {'' if alone else '1 AS id, '}{value} AS c")
            frame.write.format(kind).save(str(tmp_path / str(number)))
        except PySparkException:
            failed.add(ddl)

    assert refusal == failed


@pytest.mark.parametrize("kind", ["parquet", "delta"])
def test_a_sink_refuses_the_types_that_make_no_folder(kind: str, spark: SparkSession, tmp_path: Path) -> None:
    refusal, failed = set(), set()
    for number, (ddl, value) in enumerate(VALUES.items()):
        sink = sinks()[kind].model_validate({"path": "t", "partition_by": ["c"]})
        if sink.refuses({"id": "int", "c": ddl}):
            refusal.add(ddl)
        try:
            frame = spark.sql(f"SELECT 1 AS id, {value} AS c")
            frame.write.format(kind).partitionBy("c").save(str(tmp_path / str(number)))
        except PySparkException:
            failed.add(ddl)

    assert refusal == failed
