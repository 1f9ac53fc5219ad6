"""Write batches to Kafka with Spark's own producer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.connectors.api.ddl import (
    JSON_OPTIONS,
    instant_text_sql,
    options_argument,
    quote_name,
    quote_text,
)
from millstream.connectors.api.writer import SinkIdentity, Writer, WriteResult
from millstream.connectors.failpoints import hit_failpoint
from millstream.connectors.kafka.client.admin import describe_topics
from millstream.diagnostics.failure import NotReady

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter
    from pyspark.sql.types import StructField, StructType

    from millstream.connectors.kafka.sink import KafkaSink

QUERY_HEADER = "millstream-query"
BATCH_HEADER = "millstream-batch"


class KafkaWriter(Writer):
    """Sends each row of a batch as a record; a replayed batch is sent again.

    The headers of every record contain its query and batch, so that a reader can recognise a replay. `records` builds
    the records; `_send` sends them.
    """

    def __init__(self, sink: KafkaSink, identity: SinkIdentity) -> None:
        super().__init__(identity)
        self.sink = sink

    def open(self, spark: SparkSession, schema: StructType) -> None:  # noqa: ARG002 - the broker is asked, not Spark
        """Raise `NotReady` if no broker responds, the topic does not exist, or a required column is missing."""
        self._require_columns(schema)
        describe_topics(self.sink, (self.sink.topic,) if self.sink.topic else ())

    def write(self, frame: DataFrame, batch_id: int) -> WriteResult:
        """Send one batch; returns when all in-sync replicas have acknowledged it."""
        hit_failpoint("kafka.before")
        self._send(self.records(frame, batch_id))
        hit_failpoint("kafka.committed")
        return WriteResult()

    def flow(self, rows: DataFrame) -> DataStreamWriter:
        """Return Spark's Kafka sink. The records' headers contain the query, but no batch."""
        records = self.records(rows, None)
        return records.writeStream.format("kafka").options(**self._options())

    def records(self, frame: DataFrame, batch_id: int | None) -> DataFrame:
        """Build the columns of Spark's Kafka sink: key, value, headers, and topic if rows choose it."""
        sink = self.sink
        non_value_columns = {sink.topic_column, *sink.headers.values()}
        value_columns = [quote_name(name) for name in frame.columns if name not in non_value_columns]
        expressions = [f"{value_sql(sink, value_columns)} AS value", f"{self._headers(batch_id)} AS headers"]
        if sink.key:
            expressions.append(f"{self._key(frame.schema)} AS key")
        if sink.topic_column is not None:
            expressions.append(f"CAST({quote_name(sink.topic_column)} AS STRING) AS topic")
        return frame.selectExpr(*expressions)

    def _send(self, records: DataFrame) -> None:
        records.write.format("kafka").options(**self._options()).save()

    def _options(self) -> dict[str, str]:
        # These are also the client defaults; options that weaken them must be set explicitly.
        defaults = {"kafka.acks": "all", "kafka.enable.idempotence": "true"}
        options = {**defaults, **self.sink.client(), "includeHeaders": "true"}
        if self.sink.topic is not None:
            options["topic"] = self.sink.topic
        return options

    def _key(self, schema: StructType) -> str:
        if len(self.sink.key) > 1:
            return _object_key([schema[name] for name in self.sink.key])
        (name,) = self.sink.key
        column, kind = quote_name(name), schema[name].dataType.typeName()
        if kind == "timestamp":
            # In the hour that a zone repeats in autumn, two instants have one text, which is read as the first.
            is_unique = f"try_cast(CAST({column} AS STRING) AS TIMESTAMP) <=> {column}"
            return f"if({is_unique}, CAST({column} AS STRING), {instant_text_sql(column)})"
        return column if kind == "binary" else f"CAST({column} AS STRING)"

    def _headers(self, batch_id: int | None) -> str:
        own_headers = {QUERY_HEADER: quote_text(self.identity.query_id)}
        if batch_id is not None:
            own_headers[BATCH_HEADER] = quote_text(str(batch_id))
        user_headers = {
            name: f"CAST({quote_name(column)} AS STRING)" for name, column in self.sink.headers.items()
        }
        return (
            "array("
            + ", ".join(
                f"named_struct('key', {quote_text(name)}, 'value', CAST({value} AS BINARY))"
                for name, value in (own_headers | user_headers).items()
            )
            + ")"
        )

    def _require_columns(self, schema: StructType) -> None:
        """Check that every column named by the settings exists, and that one is left for the value."""
        sink = self.sink
        required = [*sink.key, *sink.headers.values(), *([sink.topic_column] if sink.topic_column else [])]
        required += [sink.value or "value"] if sink.format == "raw" else []
        names = schema.fieldNames()
        for column in required:
            if column not in names:
                raise NotReady(
                    f"kafka {sink.target()} uses column '{column}', which the query does not have",
                    f"choose among {', '.join(names)}",
                )
        if sink.format == "raw" and schema[sink.value or "value"].dataType.typeName() not in (
            "string",
            "binary",
        ):
            raise NotReady(
                f"kafka {sink.target()} writes column '{sink.value or 'value'}' unchanged, but it is neither "
                "STRING nor BINARY",
                "cast it in the view, or use format: json",
            )
        if set(names) <= {sink.topic_column, *sink.headers.values()}:
            raise NotReady(
                f"kafka {sink.target()} has no column left for the value",
                "remove a column from headers, or select one more",
            )


def _object_key(fields: Sequence[StructField]) -> str:
    """Return Spark SQL for a key of several columns. Its times have milliseconds, or microseconds if need be."""
    row = f"struct({', '.join(quote_name(field.name) for field in fields)})"
    key = f"to_json({row}{options_argument({'ignoreNullFields': 'false'})})"
    times = [quote_name(field.name) for field in fields if "timestamp" in field.dataType.simpleString()]
    if not times:
        return key
    is_finer = " OR ".join(f"coalesce(CAST({time} AS STRING) RLIKE '[.][0-9]{{4}}', false)" for time in times)
    return f"if({is_finer}, to_json({row}{options_argument(JSON_OPTIONS)}), {key})"


def value_sql(sink: KafkaSink, columns: list[str]) -> str:
    """Return Spark SQL for the value of a record, from the quoted names of the columns in it."""
    if sink.format == "raw":
        return quote_name(sink.value or "value")
    row = f"struct({', '.join(columns)})"
    if sink.avro_value is not None:
        encoded = f"to_avro({row}, {quote_text(sink.avro_value.text)})"
        header = sink.avro_value.head
        return f"concat(X'{header.hex()}', {encoded})" if header else encoded
    if sink.format == "csv":
        return f"to_csv({row}{options_argument(sink.format_options)})"
    # Nulls are written too, because a reader distinguishes a missing field from a null one.
    return f"to_json({row}{options_argument({'ignoreNullFields': 'false', **sink.format_options})})"
