"""Topics of a proof: filled with records, read back as their readers see them, and removed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from millstream.connectors.kafka.admin import PATIENCE, SILENT
from millstream.connectors.kafka.ends import settle
from millstream.connectors.kafka.options import READER
from millstream.diagnostics.failure import NotReady
from millstream.spec.mode import OutputMode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from millstream.connectors.elsewhere import Fed
    from millstream.connectors.kafka.broker import Broker
    from millstream.connectors.kafka.sink import KafkaSink

_FLUSH = 60.0


def send(broker: Broker, topic: str, records: Sequence[Fed]) -> None:
    """Send records, in order within a key, and wait for the broker. Raises `NotReady` when one did not arrive."""
    # Idempotent: a record that is sent again after a lost answer does not stand there twice.
    settings = {**broker.native(), "enable.idempotence": True, "partitioner": "murmur2_random"}
    producer = Producer(settings, logger=SILENT)
    lost: list[str] = []
    for record in records:
        producer.produce(
            record.topic or topic,
            record.value,
            record.key,
            on_delivery=lambda error, _: lost.append(error.str()) if error is not None else None,
        )
        producer.poll(0)
    if producer.flush(_FLUSH) or lost:
        said = lost[0] if lost else "it does not answer"
        raise NotReady(
            f"the broker did not take the records of topic '{topic}': {said}", "see the broker's log"
        )


def committed(sink: KafkaSink, spark: SparkSession, schema: StructType, mode: OutputMode) -> DataFrame | None:
    """The committed records as rows, of JSON values and headers; in update mode the last of each key."""
    settle(sink.native(), sink.topic or "")
    options = {**sink.client(), **READER, "subscribe": sink.topic or ""}
    reader = spark.read.format("kafka").options(**options, startingOffsets="earliest", includeHeaders="true")
    records = reader.load().selectExpr("key", "offset", "struct(value, headers) AS it")
    if mode is OutputMode.UPDATE:
        # A key always goes to the same partition, where offsets are its order.
        records.createOrReplaceTempView("_millstream_records")
        records = spark.sql("SELECT max_by(it, offset) AS it FROM _millstream_records GROUP BY key")
    # In a literal of Spark's a backslash and a quote are written with a backslash before them.
    apart = {
        column: header.replace("\\", "\\\\").replace("'", "\\'") for header, column in sink.headers.items()
    }
    body = [field for field in schema.fields if field.name not in apart]
    ddl = ", ".join(f"`{field.name}` {field.dataType.simpleString()}" for field in body)
    named = records.selectExpr(
        f"from_json(CAST(it.value AS STRING), '{ddl}') AS _row", "it.headers AS _headers"
    )
    return named.selectExpr(
        *(
            f"CAST(filter(_headers, one -> one.key = '{apart[name]}')[0].value AS STRING) AS `{name}`"
            if name in apart
            else f"_row.`{name}`"
            for name in schema.fieldNames()
        )
    )


def make(broker: Broker, topic: str) -> None:
    """Make a topic of one partition; one that is there stays. Raises `NotReady` where it is not allowed."""
    admin = AdminClient(dict(broker.native()), logger=SILENT)
    made = NewTopic(topic, num_partitions=1, replication_factor=-1)
    try:
        admin.create_topics([made], request_timeout=PATIENCE)[topic].result(PATIENCE)
    except KafkaException as cause:
        if cause.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS:
            return
        raise NotReady(
            f"topic '{topic}' cannot be made: {cause.args[0].str()}",
            "see that the broker is up and allows it",
        ) from cause


def remove(broker: Broker, topics: Sequence[str]) -> None:
    """Delete topics; one that is not there is no trouble."""
    admin = AdminClient(dict(broker.native()), logger=SILENT)
    for gone in admin.delete_topics(list(topics), operation_timeout=PATIENCE).values():
        try:
            gone.result(PATIENCE)
        except KafkaException:
            # Asked at the end, and again by whoever tidies up: what is gone already is as wanted.
            continue
