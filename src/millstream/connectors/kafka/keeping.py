"""Keeps dead letters in a topic: a batch's letters and its mark in the ledger are one transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.connectors.kafka.letterbox import LETTER, ensure
from millstream.connectors.kafka.transactions import TransactionalWriter
from millstream.connectors.letters import COLUMNS, Keeper

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from millstream.connectors.kafka.sink import KafkaSink
    from millstream.connectors.sink import SinkIdentity

# Times with microseconds and their zone, as any reader of JSON takes them.
_TIME = "date_format({0}, \"yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX\") AS `{0}`"
_TOLD = ("query", "source", "topic", "partition", "offset", "file", "reason", "expectation", "batch_id")


class KafkaKeeper(Keeper):
    """Keeps the letters of one query, in the driver: a batch's letters must fit into its memory."""

    def __init__(self, sink: KafkaSink, identity: SinkIdentity) -> None:
        self._writer = _Writer(sink, identity)

    def open(self, spark: SparkSession) -> None:
        """Make topic and ledger where they are missing, and take over from an earlier start."""
        self._writer.open(spark, spark.createDataFrame([], COLUMNS).schema)

    def keep(self, frame: DataFrame, batch_id: int, size: int) -> None:  # noqa: ARG002 - all go the same way
        """One transaction: the letters, and the batch's mark."""
        self._writer.write(frame, batch_id)

    def close(self) -> None:
        """Let the producer go."""
        self._writer.close()


class _Writer(TransactionalWriter):
    """The sink's writer, of records that are made otherwise."""

    def open(self, spark: SparkSession, schema: StructType) -> None:
        """As in the base, once there is a topic."""
        ensure(self.sink, self.sink.topic or "")
        super().open(spark, schema)

    def records(self, frame: DataFrame, batch_id: int | None) -> DataFrame:  # noqa: ARG002 - a column tells the batch
        """Key and value as they came; the headers too, and behind them the one that tells the rest."""
        told = ", ".join([*(f"`{name}`" for name in _TOLD), _TIME.format("timestamp"), _TIME.format("at")])
        letter = f"to_json(struct({told}), map('ignoreNullFields', 'false'))"
        header = f"array(named_struct('key', '{LETTER}', 'value', CAST({letter} AS BINARY)))"
        none = "CAST(array() AS ARRAY<STRUCT<key: STRING, value: BINARY>>)"
        return frame.selectExpr("key", "value", f"concat(coalesce(headers, {none}), {header}) AS headers")
