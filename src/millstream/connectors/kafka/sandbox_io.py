"""Sandbox topics of a proof: fill them with records, read them back as their readers do, and delete them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from millstream.connectors.api.ddl import parsed_values, quote_name
from millstream.connectors.kafka.client.admin import PATIENCE, create_client
from millstream.connectors.kafka.client.options import READER
from millstream.connectors.kafka.client.partition_ends import wait_for_commits
from millstream.connectors.kafka.writer import value_sql
from millstream.diagnostics.failure import NotReady
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from millstream.connectors.api.values.sandbox import InputRecord
    from millstream.connectors.kafka.client.broker import Broker
    from millstream.connectors.kafka.sink import KafkaSink

_FLUSH = 60.0


def send_records(broker: Broker, topic: str, records: Sequence[InputRecord]) -> None:
    """Send records, in order within a key, and wait until the broker has them. Raises `NotReady` if one fails."""
    # Idempotent, so that a record sent again after a lost acknowledgement is stored once.
    settings = {**broker.native(), "enable.idempotence": True, "partitioner": "murmur2_random"}
    producer = create_client(Producer, settings)
    errors: list[str] = []
    for record in records:
        producer.produce(
            record.topic or topic,
            record.value,
            record.key,
            on_delivery=lambda error, _: errors.append(error.str()) if error is not None else None,
        )
        producer.poll(0)
    if producer.flush(_FLUSH) or errors:
        reason = errors[0] if errors else "no response"
        raise NotReady(
            f"the broker did not accept the records of topic '{topic}': {reason}", "see the broker's log"
        )


def read_committed(
    sink: KafkaSink, spark: SparkSession, schema: StructType, mode: OutputMode
) -> DataFrame | None:
    """Read the committed records as rows of JSON values and headers; in update mode, the last record of each key."""
    wait_for_commits(sink.native(), sink.topic or "")
    options = {**sink.client(), **READER, "subscribe": sink.topic or ""}
    reader = spark.read.format("kafka").options(**options, startingOffsets="earliest", includeHeaders="true")
    records = reader.load().selectExpr("key", "offset", "struct(value, headers) AS it")
    if mode is OutputMode.UPDATE:
        # All records of a key are in the same partition, so that their offsets give their order.
        records.createOrReplaceTempView("_millstream_records")
        records = spark.sql("SELECT max_by(it, offset) AS it FROM _millstream_records GROUP BY key")
    # A Spark SQL literal needs a backslash before a backslash or a quote.
    header_names = {
        column: header.replace("\\", "\\\\").replace("'", "\\'") for header, column in sink.headers.items()
    }
    body = [field for field in schema.fields if field.name not in header_names]
    ddl = ", ".join(f"`{field.name}` {field.dataType.simpleString()}" for field in body)
    parsed = records.selectExpr(
        f"from_json(CAST(it.value AS STRING), '{ddl}') AS _row", "it.headers AS _headers"
    )
    return parsed.selectExpr(
        *(
            f"CAST(filter(_headers, one -> one.key = '{header_names[name]}')[0].value AS STRING) AS `{name}`"
            if name in header_names
            else f"_row.`{name}`"
            for name in schema.fieldNames()
        )
    )


def stored_values(sink: KafkaSink, schema: StructType) -> dict[str, str]:
    """Return Spark SQL for the values that `read_committed` reads of a record's JSON value."""
    body = type(schema)([field for field in schema.fields if field.name not in sink.headers.values()])
    text = value_sql(sink, [*map(quote_name, body.fieldNames())])
    return parsed_values("json", text, body, {})


def create_topic(broker: Broker, topic: str) -> None:
    """Create a topic of one partition unless it exists. Raises `NotReady` if it cannot be created."""
    admin = create_client(AdminClient, broker.native())
    new_topic = NewTopic(topic, num_partitions=1, replication_factor=-1)
    try:
        admin.create_topics([new_topic], request_timeout=PATIENCE)[topic].result(PATIENCE)
    except KafkaException as cause:
        if cause.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS:
            return
        raise NotReady(
            f"topic '{topic}' cannot be created: {cause.args[0].str()}",
            "check that the broker is running and permits it",
        ) from cause


def delete_topics(broker: Broker, topics: Sequence[str]) -> None:
    """Delete topics; ignore those that do not exist."""
    admin = create_client(AdminClient, broker.native())
    for future in admin.delete_topics(list(topics), operation_timeout=PATIENCE).values():
        try:
            future.result(PATIENCE)
        except KafkaException:
            # Topics are deleted at the end of a proof and again by its cleanup.
            continue
