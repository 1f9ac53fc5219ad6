"""Read keys and values of a state store, its sizes, and what changed between two batches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField, StructType, TimestampType

from millstream.checkpoint.remote.path import to_spark_path

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import Column, DataFrame, SparkSession

    from millstream.checkpoint.remote.path import CheckpointPath
    from millstream.state.stores import StateStore

# The value of a deduplication within the watermark: when the key is removed.
_EXPIRY = "expiresAtMicros"
REMOVED = "removed after"


def read_store(
    spark: SparkSession, folder: CheckpointPath, store: StateStore, batch: int | None = None
) -> DataFrame:
    """Return the state after a batch, the newest by default: a column for each part of key and value.

    Columns have the names of the query: keys by their column, aggregates by their expression. `removed after` is the
    watermark that removes the key, where it is known.
    """
    reader = spark.read.format("statestore").options(**store.options)
    if batch is not None:
        reader = reader.option("batchId", batch)
    frame = reader.load(to_spark_path(folder))
    return frame.select(*_name_columns(frame, store))


def read_changes(
    spark: SparkSession, folder: CheckpointPath, store: StateStore, first: int, last: int
) -> DataFrame:
    """Return what batches `first` to `last` changed: `batch_id`, `change_type` (update, delete), key and value."""
    reader = spark.read.format("statestore").options(**store.options).option("readChangeFeed", value=True)
    frame = (
        reader.option("changeStartBatchId", first)
        .option("changeEndBatchId", last)
        .load(to_spark_path(folder))
    )
    changes = [F.col(name) for name in ("batch_id", "change_type") if name in frame.columns]
    return frame.select(*changes, *_name_columns(frame, store))


def _name_columns(frame: DataFrame, store: StateStore) -> Iterator[Column]:
    recorded = store.recorded
    types = {field.name: field.dataType for field in frame.schema.fields}
    key, value = types.get("key"), types.get("value")
    if isinstance(key, StructType):
        names = [term.name for term in recorded.keys] if recorded else []
        for number, field in enumerate(key.fields):
            own = names[number] if len(names) == len(key.fields) else ""
            yield F.col("key").getField(field.name).alias(own or field.name)
    if isinstance(value, StructType):
        names = _value_names(store, len(value.fields))
        for number, (field, column) in enumerate(_list_fields("value", value)):
            if field.name == _EXPIRY and isinstance(field.dataType, LongType):
                yield F.timestamp_micros(column).alias(REMOVED)
            else:
                yield column.alias(names[number] if names else field.name)
    for name in types:
        if name not in ("key", "value", "batch_id", "change_type", "partition_id"):
            yield F.col(name)
    if isinstance(key, StructType) and (window := _find_window(key)):
        yield F.col("key").getField(window).getField("end").alias(REMOVED)
    yield F.col("partition_id").alias("partition")


def _list_fields(name: str, struct: StructType) -> list[tuple[StructField, Column]]:
    """Return the fields of a struct with their columns. Two sums of a query have buffers of one name, `sum`."""
    numbered = [
        StructField(f"_{number}", field.dataType, field.nullable)
        for number, field in enumerate(struct.fields)
    ]
    # A cast between structs goes by position.
    column = F.col(name).cast(StructType(numbered))
    return [(field, column.getField(f"_{number}")) for number, field in enumerate(struct.fields)]


def _value_names(store: StateStore, count: int) -> list[str]:
    """Return the names of an aggregation's buffers: the aggregate, with a number if it has several."""
    if store.recorded is None or not store.recorded.kind.startswith("aggregation"):
        return []
    names = []
    for term in store.recorded.values:
        buffers = len(term.type.split(", "))
        names += [term.text] if buffers == 1 else [f"{term.text} {number + 1}" for number in range(buffers)]
    return names if len(names) == count else []


def _find_window(key: StructType) -> str | None:
    """Return the part of a key that is a window of event time."""
    for field in key.fields:
        kind = field.dataType
        if isinstance(kind, StructType) and kind.fieldNames() == ["start", "end"]:
            return field.name if isinstance(kind["end"].dataType, TimestampType) else None
    return None


def measure_stores(
    spark: SparkSession, folder: CheckpointPath, store: StateStore, batches: int = 2
) -> list[dict[str, Any]]:
    """Return the number of keys of each partition after the newest batch, and the growth over the last ones."""
    newest = store.last_batch
    former = max(store.first_batch, newest - batches)
    counts = [_count(spark, folder, store, batch) for batch in (former, newest)]
    return [
        {
            "operator": store.operator,
            "state": store.label,
            "partition": partition,
            "keys": counts[1].get(partition, 0),
            "growth": counts[1].get(partition, 0) - counts[0].get(partition, 0),
            "batches": newest - former,
        }
        for partition in range(store.partitions)
    ]


def _count(spark: SparkSession, folder: CheckpointPath, store: StateStore, batch: int) -> dict[int, int]:
    frame = (
        spark.read.format("statestore")
        .options(**store.options)
        .option("batchId", batch)
        .load(to_spark_path(folder))
    )
    return {
        int(row["partition_id"]): int(row["count"]) for row in frame.groupBy("partition_id").count().collect()
    }
