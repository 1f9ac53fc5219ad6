"""Read a large batch in the driver: one portion at a time, in the order of its rows."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from itertools import islice
from math import ceil
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from millstream.diagnostics.failure import Outage
from millstream.spark import internals

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import DataFrame, Row

PORTION = 16 * 1024 * 1024
"""About the most bytes of keys, values and headers in a portion."""

_POSITION, _PORTION = "__millstream_position", "__millstream_portion"
# Spark numbers the rows of partition P from P << 33.
_PARTITION, _ROW = f"shiftright({_POSITION}, 33)", f"({_POSITION} & {(1 << 33) - 1})"
# What a record takes in the driver's JVM besides its key and its value.
_OVERHEAD = 64


@dataclass(frozen=True)
class _Partition:
    """The rows of one of Spark's partitions, and the bytes in them."""

    number: int
    rows: int
    size: int

    @property
    def portions(self) -> int:
        return max(1, ceil(self.size / PORTION))


@dataclass(frozen=True)
class StoredRows:
    """A batch on the executors' disks: the number of its rows, whether they are more than a portion, and the rows."""

    count: int
    is_large: bool
    chunks: Iterator[pa.RecordBatch]


def is_too_large_for_driver(error: BaseException) -> bool:
    """Return whether Spark refused to bring the rows of a job to the driver, because they exceed its limit."""
    # Only the setting's name distinguishes this error from others of Spark.
    return "spark.driver.maxResultSize" in str(error)


@contextlib.contextmanager
def read_in_portions(records: DataFrame, chunk: int) -> Iterator[StoredRows]:
    """Yield the rows of a batch, in chunks of at most `chunk` rows.

    The columns are texts, bytes, numbers, and arrays and structs of these, but no times, which Spark gives in
    another time zone here than in Arrow. The frame is executed once, before this yields: the executors keep the
    rows on their disks. If an executor is lost with its rows, the chunks raise `Outage`: rows that are computed
    again could have another order, and the driver may have read some of them.
    """
    numbered = records.selectExpr("*", f"monotonically_increasing_id() AS {_POSITION}")
    stored = numbered.localCheckpoint(eager=True, storageLevel=records.storageLevel.DISK_ONLY)
    try:
        partitions = _measure(stored)
        is_large = sum(partition.size for partition in partitions) > PORTION
        count = sum(partition.rows for partition in partitions)
        yield StoredRows(count, is_large, _read(stored, partitions, chunk))
    finally:
        internals.drop_local_checkpoint(stored)


def _measure(stored: DataFrame) -> list[_Partition]:
    texts = {"key": "key", "value": "value", "headers": "to_json(headers)"}
    sizes = [f"coalesce(octet_length({text}), 0)" for name, text in texts.items() if name in stored.columns]
    size = " + ".join([str(_OVERHEAD), *sizes])
    measured = stored.selectExpr(f"{_PARTITION} AS number", f"{size} AS size").groupBy("number")
    rows = measured.agg({"*": "count", "size": "sum"}).collect()
    partitions = [_Partition(row["number"], row["count(1)"], row["sum(size)"]) for row in rows]
    return sorted(partitions, key=lambda partition: partition.number)


def _read(stored: DataFrame, partitions: Sequence[_Partition], chunk: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows of the partitions in order, with one portion in memory."""
    if not partitions:
        return
    first, firsts, lengths = 0, {}, {}
    for partition in partitions:
        firsts[partition.number], lengths[partition.number] = first, ceil(partition.rows / partition.portions)
        first += partition.portions
    portion = f"CAST({_lookup(firsts)} + {_ROW} DIV {_lookup(lengths)} AS INT)"
    numbered = stored.selectExpr("*", f"{portion} AS {_PORTION}")
    # A shuffle keeps the order of the rows of one task, as far as was seen; the sort does not rely on it.
    portions = numbered.repartitionById(first, _PORTION).sortWithinPartitions(_POSITION)
    # Large rows come in small chunks: none is larger than a portion, if the rows have the same size.
    size, count = (
        sum(values) for values in zip(*((item.size, item.rows) for item in partitions), strict=True)
    )
    chunk = max(1, min(chunk, count * PORTION // size))
    with _losing_rows_is_an_outage():
        # This may already read the rows, to move them between executors.
        rows = portions.drop(_POSITION, _PORTION).toLocalIterator()
    while some := _take(rows, chunk):
        yield pa.RecordBatch.from_pylist(some)


def _take(rows: Iterator[Row], count: int) -> list[dict[str, Any]]:
    with _losing_rows_is_an_outage():
        return [row.asDict(recursive=True) for row in islice(rows, count)]


@contextlib.contextmanager
def _losing_rows_is_an_outage() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        raise Outage(
            "the driver cannot read the rows of a large batch, which executors keep on their disks; perhaps an "
            "executor was lost",
            "the batch is computed and sent again; Spark's log has the reason",
        ) from error


def _lookup(numbers: dict[int, int]) -> str:
    """Return SQL for the number of a row's partition."""
    pairs = ", ".join(f"{key}L, {value}L" for key, value in numbers.items())
    return f"element_at(map({pairs}), {_PARTITION})"
