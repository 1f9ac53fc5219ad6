"""Write dead letters to a topic: a batch's dead letters and its ledger entry are one transaction."""

from __future__ import annotations

import contextlib
from itertools import islice
from typing import TYPE_CHECKING

import pyarrow as pa

from millstream.connectors.api.dead_letters import COLUMNS, FEW, DeadLetterWriter
from millstream.connectors.kafka.dead_letter_topic import LETTER, ensure_topic
from millstream.connectors.kafka.transactions import TransactionalWriter

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from millstream.connectors.api.writer import SinkIdentity
    from millstream.connectors.kafka.sink import KafkaSink

# ISO timestamps with microseconds and time zone, which any JSON reader understands.
_TIME = "date_format({0}, \"yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX\") AS `{0}`"
_DETAILS = ("query", "source", "topic", "partition", "offset", "file", "reason", "expectation", "batch_id")
# Size of a portion in bytes, and the number of records converted to messages at a time.
PORTION, CHUNK = 16 * 1024 * 1024, 1000
_SCHEMA = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
    ]
)


class KafkaDeadLetterWriter(DeadLetterWriter):
    """Writes the dead letters of one query.

    A few dead letters of a batch are collected in the driver at once. Many are first written to Spark's local disks
    and read in portions, so that a batch of only malformed records does not fill the driver's memory.
    """

    def __init__(self, sink: KafkaSink, identity: SinkIdentity) -> None:
        self._writer = _Writer(sink, identity)

    def open(self, spark: SparkSession) -> None:
        """Create the topic and the ledger if they are missing, and fence the producer of an earlier start."""
        self._writer.checkpoint = self.checkpoint
        self._writer.open(spark, spark.createDataFrame([], COLUMNS).schema)

    def keep(self, frame: DataFrame, batch_id: int, size: int) -> None:
        """Write the dead letters and the ledger entry in one transaction."""
        self._writer.portions = 1 + size // PORTION if size >= FEW else 1
        self._writer.write(frame, batch_id)

    def close(self) -> None:
        """Close the producer."""
        self._writer.close()


class _Writer(TransactionalWriter):
    """Transactional writer whose records are dead letters."""

    portions = 1
    """Number of portions in which the records are read; with one, they are collected at once."""

    def open(self, spark: SparkSession, schema: StructType) -> None:
        """Create the topic if it is missing, then open the base writer."""
        ensure_topic(self.sink, self.sink.topic or "")
        super().open(spark, schema)

    def records(self, frame: DataFrame, batch_id: int | None) -> DataFrame:  # noqa: ARG002 - a column has the batch id
        """Build records with the original key, value and headers, and a last header with the other details."""
        details = ", ".join(
            [*(f"`{name}`" for name in _DETAILS), _TIME.format("timestamp"), _TIME.format("at")]
        )
        details_json = f"to_json(struct({details}), map('ignoreNullFields', 'false'))"
        header = f"array(named_struct('key', '{LETTER}', 'value', CAST({details_json} AS BINARY)))"
        no_headers = "CAST(array() AS ARRAY<STRUCT<key: STRING, value: BINARY>>)"
        return frame.selectExpr(
            "key", "value", f"concat(coalesce(headers, {no_headers}), {header}) AS headers"
        )

    @contextlib.contextmanager
    def _collected(self, records: DataFrame) -> Iterator[tuple[int, Iterable[pa.RecordBatch]]]:
        """Collect as the base does, or read from disk if there are several portions."""
        if self.portions == 1:
            with super()._collected(records) as collected:
                yield collected
            return
        stored = records.repartition(self.portions).persist(records.storageLevel.DISK_ONLY)
        try:
            # Computed before the transaction opens, so that it is open only while records are sent.
            yield stored.count(), _chunks(stored)
        finally:
            stored.unpersist()


def _chunks(records: DataFrame) -> Iterator[pa.RecordBatch]:
    """Yield the records in chunks, with at most one portion in memory."""
    rows = records.toLocalIterator()
    while chunk := [row.asDict(recursive=True) for row in islice(rows, CHUNK)]:
        yield pa.RecordBatch.from_pylist(chunk, schema=_SCHEMA)
