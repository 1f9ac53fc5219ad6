"""The columns that a schema says without Spark are those that Spark reads."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import from_avro

from millstream.spec.avro.schema import columns_of_schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.usefixtures("compiled")

PLACE = {"type": "record", "name": "Place", "fields": [{"name": "x", "type": ["null", "float"]}]}
KINDS = [
    "boolean", "int", "long", "float", "double", "bytes", "string",
    ["null", "int"], ["int", "long"], ["float", "double"],
    ["null", "string", "int"], PLACE, "Place", {"type": "array", "items": ["null", "Place"]},
    {"type": "map", "values": {"type": "array", "items": "long"}},
    {"type": "enum", "name": "Kind", "symbols": ["a"]}, {"type": "fixed", "name": "Md5", "size": 16},
    *({"type": "long", "logicalType": f"{kind}-{unit}"}
      for kind in ("timestamp", "local-timestamp", "time") for unit in ("millis", "micros", "nanos")
      if (kind, unit) != ("time", "millis")),
    {"type": "int", "logicalType": "date"}, {"type": "int", "logicalType": "time-millis"},
    {"type": "string", "logicalType": "uuid"},
    {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
    {"type": "fixed", "name": "Money", "size": 8, "logicalType": "decimal", "precision": 12},
]  # fmt: skip


def test_every_type_is_what_spark_reads(spark: SparkSession) -> None:
    fields = [{"name": f"c{number}", "type": kind} for number, kind in enumerate(KINDS)]
    schema = {"type": "record", "name": "All", "namespace": "shop", "fields": fields}

    (read,) = spark.range(0).select(from_avro(F.lit(b""), json.dumps(schema)).alias("it")).schema

    assert columns_of_schema(schema) == {
        field.name: field.dataType.simpleString() for field in read.dataType.fields
    }
