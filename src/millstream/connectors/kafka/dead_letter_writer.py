"""Write dead letters to a topic: a batch's dead letters and its ledger entry are one transaction."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from millstream.connectors.api.dead_letters import COLUMNS, FEW, DeadLetterWriter
from millstream.connectors.kafka.dead_letter_topic import LETTER, ensure_topic
from millstream.connectors.kafka.transactions import CHUNK, TransactionalWriter

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from millstream.connectors.api.writer import SinkIdentity
    from millstream.connectors.kafka.sink import KafkaSink

_DETAILS = ("query", "source", "topic", "partition", "offset", "file", "reason", "expectation", "batch_id")
_TIMES = ("timestamp", "at")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


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

    def keep(self, frame: DataFrame, batch_id: int, size: int) -> bool:
        """Write the dead letters and the ledger entry in one transaction."""
        self._writer.is_large = size >= FEW
        return not self._writer.write(frame, batch_id).is_skipped

    def keep_rows(self, spark: SparkSession, rows: pa.Table, batch_id: int) -> None:  # noqa: ARG002 - no Spark job
        """Write the dead letters and the ledger entry in one transaction, without a Spark job."""
        if self._writer.has_batch(batch_id):
            return
        for name in _TIMES:
            index = rows.schema.get_field_index(name)
            rows = rows.set_column(index, name, rows[name].cast(pa.int64()))
        self._writer.send(rows.num_rows, rows.to_batches(max_chunksize=CHUNK), batch_id)

    def close(self) -> None:
        """Close the producer."""
        self._writer.close()


class _Writer(TransactionalWriter):
    """Transactional writer whose records are dead letters."""

    def open(self, spark: SparkSession, schema: StructType) -> None:
        """Create the topic if it is missing, then open the base writer."""
        ensure_topic(self.sink, self.sink.topic or "")
        super().open(spark, schema)

    def records(self, frame: DataFrame, batch_id: int | None) -> DataFrame:  # noqa: ARG002 - a column has the batch id
        """Return the dead letters with times in microseconds, which are the same in every time zone."""
        times = (f"unix_micros(`{name}`) AS `{name}`" for name in _TIMES)
        return frame.selectExpr("key", "value", "headers", *(f"`{name}`" for name in _DETAILS), *times)

    def _messages(self, chunks: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
        """Yield records with the original key, value and headers, and a last header with the other details."""
        for chunk in chunks:
            yield self.sink.topic or "", [_to_message(letter) for letter in chunk.to_pylist()]


def _to_message(letter: dict[str, Any]) -> dict[str, Any]:
    """Return the record of a dead letter, as the producer takes it."""
    details = {name: letter[name] for name in _DETAILS} | {
        name: None if letter[name] is None else _format_time(letter[name]) for name in _TIMES
    }
    text = json.dumps(details, ensure_ascii=False, separators=(",", ":"))
    headers = [(header["key"], header["value"]) for header in letter["headers"] or ()]
    return {
        "key": letter["key"],
        "value": letter["value"],
        "headers": [*headers, (LETTER, text.encode())],
    }


def _format_time(micros: int) -> str:
    """Return an ISO timestamp with microseconds and time zone, which any JSON reader understands."""
    time = (_EPOCH + timedelta(microseconds=micros)).isoformat(timespec="microseconds")
    return time.replace("+00:00", "Z")
