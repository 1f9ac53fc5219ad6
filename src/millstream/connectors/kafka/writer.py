"""Writes batches to Kafka through Spark's own producer."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from millstream.connectors.failpoints import reach
from millstream.connectors.kafka.admin import look
from millstream.connectors.sink import SinkIdentity, Writer, Written
from millstream.diagnostics.failure import NotReady

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter
    from pyspark.sql.types import StructType

    from millstream.connectors.kafka.sink import KafkaSink

QUERY_HEADER = "millstream-query"
BATCH_HEADER = "millstream-batch"


class KafkaWriter(Writer):
    """Sends each row of a batch as a record; a batch that is replayed is sent again.

    Every record says in its headers which batch of which query it belongs to, so that a reader can tell a
    replay. What a record is made of is `records`; how it is sent is `_send`.
    """

    def __init__(self, sink: KafkaSink, identity: SinkIdentity) -> None:
        super().__init__(identity)
        self.sink = sink

    def open(self, spark: SparkSession, schema: StructType) -> None:  # noqa: ARG002 - the broker is asked, not Spark
        """Raises `NotReady` when no broker answers, the topic is missing, or a column does not come."""
        self._fits(schema)
        look(self.sink, (self.sink.topic,) if self.sink.topic else ())

    def write(self, frame: DataFrame, batch_id: int) -> Written:
        """Send one batch, and return once every replica has it."""
        reach("kafka.before")
        self._send(self.records(frame, batch_id))
        reach("kafka.committed")
        return Written()

    def flow(self, rows: DataFrame) -> DataStreamWriter:
        """Spark's Kafka sink. Records say which query they are of, and no batch."""
        records = self.records(rows, None)
        return records.writeStream.format("kafka").options(**self._options())

    def records(self, frame: DataFrame, batch_id: int | None) -> DataFrame:
        """The rows as Spark's Kafka sink takes them: key, value, headers, and topic when rows name it."""
        sink = self.sink
        apart = {sink.topic_column, *sink.headers.values()}
        body = [_quoted(name) for name in frame.columns if name not in apart]
        made = [f"{self._value(body)} AS value", f"{self._headers(batch_id)} AS headers"]
        if sink.key:
            made.append(f"{self._key(frame.schema)} AS key")
        if sink.topic_column is not None:
            made.append(f"CAST({_quoted(sink.topic_column)} AS STRING) AS topic")
        return frame.selectExpr(*made)

    def _send(self, records: DataFrame) -> None:
        records.write.format("kafka").options(**self._options()).save()

    def _options(self) -> dict[str, str]:
        # Kafka's clients have these two as defaults; options that weaken them must be given by name.
        safe = {"kafka.acks": "all", "kafka.enable.idempotence": "true"}
        options = {**safe, **self.sink.client(), "includeHeaders": "true"}
        if self.sink.topic is not None:
            options["topic"] = self.sink.topic
        return options

    def _value(self, body: list[str]) -> str:
        sink = self.sink
        if sink.format == "raw":
            return _quoted(sink.value or "value")
        row = f"struct({', '.join(body)})"
        if sink.avro_value is not None:
            made = f"to_avro({row}, {_text(sink.avro_value.text)})"
            head = sink.avro_value.head
            return f"concat(X'{head.hex()}', {made})" if head else made
        if sink.format == "csv":
            return f"to_csv({row}{_options(sink.format_options)})"
        # Every record has every field: a field that is missing and one that is null read differently.
        return f"to_json({row}{_options({'ignoreNullFields': 'false', **sink.format_options})})"

    def _key(self, schema: StructType) -> str:
        if len(self.sink.key) > 1:
            row = ", ".join(_quoted(name) for name in self.sink.key)
            return f"to_json(struct({row}){_options({'ignoreNullFields': 'false'})})"
        (name,) = self.sink.key
        binary = schema[name].dataType.typeName() == "binary"
        return _quoted(name) if binary else f"CAST({_quoted(name)} AS STRING)"

    def _headers(self, batch_id: int | None) -> str:
        ours = {QUERY_HEADER: _text(self.identity.query_id)}
        if batch_id is not None:
            ours[BATCH_HEADER] = _text(str(batch_id))
        theirs = {name: f"CAST({_quoted(column)} AS STRING)" for name, column in self.sink.headers.items()}
        return (
            "array("
            + ", ".join(
                f"named_struct('key', {_text(name)}, 'value', CAST({value} AS BINARY))"
                for name, value in (ours | theirs).items()
            )
            + ")"
        )

    def _fits(self, schema: StructType) -> None:
        """Each column that is named must come, and one must be left for the value."""
        sink = self.sink
        wanted = [*sink.key, *sink.headers.values(), *([sink.topic_column] if sink.topic_column else [])]
        wanted += [sink.value or "value"] if sink.format == "raw" else []
        names = schema.fieldNames()
        for column in wanted:
            if column not in names:
                raise NotReady(
                    f"kafka {sink.target()} uses column '{column}', which does not come",
                    f"choose among {', '.join(names)}",
                )
        if sink.format == "raw" and schema[sink.value or "value"].dataType.typeName() not in (
            "string",
            "binary",
        ):
            raise NotReady(
                f"kafka {sink.target()} takes column '{sink.value or 'value'}' as it is, and it is neither "
                "STRING nor BINARY",
                "cast it in the view, or use format: json",
            )
        if set(names) <= {sink.topic_column, *sink.headers.values()}:
            raise NotReady(
                f"kafka {sink.target()} has no column left for the value",
                "take a column out of headers, or select one more",
            )


def _quoted(name: str) -> str:
    """A column's name in SQL."""
    return f"`{name.replace('`', '``')}`"


def _text(text: str) -> str:
    """A text in SQL. JSON's escapes are those of Spark's strings, whatever the text holds."""
    return "'" + json.dumps(text)[1:-1].replace("'", "\\'") + "'"


def _options(options: dict[str, str]) -> str:
    """`, map(…)` for a SQL function that takes options."""
    return f", map({', '.join(_text(part) for pair in options.items() for part in pair)})" if options else ""
