"""Kafka sink: write each row of a batch as a record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Self

from pydantic import Field

from millstream.connectors.api.ddl import outer_type, type_names
from millstream.connectors.api.json_keys import json_key_problems
from millstream.connectors.api.sink import Sink
from millstream.connectors.api.values.problem import Problem, RequiredResource
from millstream.connectors.kafka import avro
from millstream.connectors.kafka.client.broker import Broker
from millstream.connectors.kafka.client.options import (
    LEDGER_TOPIC,
    PRODUCER_OPTIONS,
    SINK_FIELDS,
    to_strings,
    weakening_problems,
)
from millstream.connectors.kafka.client.options import problems as option_problems
from millstream.connectors.kafka.system import KAFKA
from millstream.spec.avro.schema import Avro
from millstream.spec.column_names import KnownNames
from millstream.spec.guarantee import Guarantee
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from millstream.connectors.api.values.connectivity import ConnectivityFinding
    from millstream.connectors.api.values.event_time_range import EventTimeRange
    from millstream.connectors.api.values.lineage_dataset import LineageDataset
    from millstream.connectors.api.values.sandbox import Sandbox
    from millstream.connectors.api.writer import SinkIdentity, Writer


class KafkaSink(Broker, Sink):
    """A Kafka topic, or a topic chosen by each row."""

    kind = "kafka"
    server = "kafka"
    system = KAFKA
    main = "topic"
    modes = frozenset({OutputMode.APPEND, OutputMode.UPDATE})
    writes_in_tasks = True
    flows = frozenset({"continuous", "real_time"})

    topic: str | None = Field(default=None, examples=["funnel"])
    """Topic for all records."""
    topic_column: str | None = None
    """Column that contains each row's topic, as an alternative to `topic`."""
    key: KnownNames = ()
    """Record key: one column as text (bytes unchanged), or several columns as a JSON object. Empty: no key."""
    format: Literal["json", "csv", "avro", "raw"] = "json"
    """Record value: `json`, an object with every field, including nulls; `csv`, a line; `avro`, a record in Avro's
    binary form; `raw`, one column."""
    avro_value: Avro | None = None
    """With `format: avro`, the schema of the values and the header in front of them."""
    value: str | None = None
    """With `format: raw`, the column that contains the value as text or bytes. Default: `value`."""
    headers: dict[str, str] = Field(default_factory=dict, examples=[{"trace-id": "trace_id"}])
    """Record headers: header name, and the column with its value."""
    format_options: dict[str, str] = Field(default_factory=dict, examples=[{"timestampFormat": "yyyy-MM-dd"}])
    """Options of Spark's JSON or CSV writer, such as `timestampFormat` or `sep`."""
    transactional: bool = False
    """Write each batch in one transaction, for readers with `read_committed`; `guarantee: exactly-once` sets this."""
    ledger_topic: str = LEDGER_TOPIC
    """Topic for the batch ledger of transactional sinks: compacted, with one partition; created if missing."""

    def writer(self, identity: SinkIdentity) -> Writer:
        """Create a writer that uses Spark's Kafka producer, or a transactional one in the driver."""
        if self.transactional:
            from millstream.connectors.kafka.transactions import TransactionalWriter  # noqa: PLC0415 - a heavy client

            return TransactionalWriter(self, identity)
        from millstream.connectors.kafka.writer import KafkaWriter  # noqa: PLC0415 - checking needs no writer

        return KafkaWriter(self, identity)

    def guarantee(self, mode: OutputMode) -> tuple[Guarantee, str]:  # noqa: ARG002 - the same in both
        """Guarantee at-least-once, or exactly-once for `read_committed` readers if transactional."""
        if self.transactional:
            return (
                Guarantee.EXACTLY_ONCE,
                "a batch's records and its ledger entry are written in one transaction; readers must set "
                "isolation.level=read_committed",
            )
        return (
            Guarantee.AT_LEAST_ONCE,
            "all in-sync replicas acknowledge the records before the batch is committed; a batch replayed after a "
            "crash is sent again with the same millstream-batch header",
        )

    def problems(self, mode: OutputMode) -> list[Problem]:
        """Check the topic, the value settings for the format, and the key that update mode needs."""
        problems = self.broker_problems() + option_problems(self.options, SINK_FIELDS)
        if self.transactional:
            problems += [
                Problem(
                    "options",
                    f"a transactional kafka sink does not support option '{key}'",
                    f"remove it; supported options are {', '.join(PRODUCER_OPTIONS)}",
                )
                for key in self.options
                if key.lower() not in PRODUCER_OPTIONS
            ]
        if (self.topic is None) == (self.topic_column is None):
            problems.append(
                Problem(
                    "topic", "kafka needs a topic", "add topic: NAME, or topic_column for a topic per row"
                )
                if self.topic is None
                else Problem(
                    "topic_column", "kafka has both 'topic' and 'topic_column'", "keep only one of them"
                )
            )
        if self.value is not None and self.format != "raw":
            problems.append(
                Problem("value", f"format {self.format} writes all columns to the value", "set format: raw")
            )
        if self.format in ("raw", "avro") and self.format_options:
            problems.append(Problem("format_options", f"format {self.format} has no options", "remove them"))
        problems += avro.problems(self.format, self.avro_value)
        if mode is OutputMode.UPDATE and not self.key:
            problems.append(
                Problem(
                    "key",
                    "kafka in update mode needs the key of a row",
                    "add key with the columns that identify a row",
                    "a row is written again whenever it changes; readers find its latest version by the key",
                )
            )
        return problems

    def record_mode_problems(self) -> list[Problem]:
        """Report transactions, because each one is a batch."""
        if not self.transactional:
            return []
        return [
            Problem(
                "transactional",
                "a transactional kafka sink needs batches, and this trigger has none",
                "remove 'transactional: true' (and 'guarantee: exactly-once', which implies it), or use a trigger "
                "with batches",
            )
        ]

    def writes_to(self) -> frozenset[str]:
        """Return the topic with its brokers, if it is fixed."""
        return frozenset({self.place_of(self.topic)}) if self.topic else frozenset()

    def datasets(self) -> tuple[LineageDataset, ...]:
        """Return the topic, if it is fixed."""
        return self.datasets_of([self.topic] if self.topic else [])

    def weakening_problems(self, mode: OutputMode) -> list[Problem]:  # noqa: ARG002 - the same in both
        """Find client options that can lose or duplicate records."""
        return weakening_problems(self.options)

    def named_columns(self) -> Mapping[str, tuple[str, ...]]:
        """Return the columns used for topic, key, headers and raw value."""
        return {
            "topic_column": (self.topic_column,) if self.topic_column else (),
            "key": self.key,
            "headers": tuple(self.headers.values()),
            "value": (self.value or "value",) if self.format == "raw" else (),
        }

    def refuses(self, columns: Mapping[str, str]) -> list[Problem]:
        """Check the types of a raw value and of CSV columns, and that a column is left for the value."""
        raw = self.value or "value"
        # A key of several columns is JSON, whatever the value is.
        keys = {name: columns[name] for name in self.key if name in columns} if len(self.key) > 1 else {}
        if problems := list(json_key_problems(keys)):
            return problems
        if self.format == "raw":
            if raw not in columns or outer_type(columns[raw]) in ("string", "binary", "char", "varchar"):
                return []
            return [
                Problem(
                    "value" if self.value else "format",
                    f"a raw value must be text or bytes, and column '{raw}' is {columns[raw]}",
                    f"cast it in the view: CAST({raw} AS STRING) AS {raw}, or use format: json",
                )
            ]
        body = {
            name: kind
            for name, kind in columns.items()
            if name not in {self.topic_column, *self.headers.values()}
        }
        if self.avro_value is not None:
            return avro.column_problems(self.avro_value, body)
        if not body:
            return [
                Problem(
                    "headers",
                    "all columns are used for the topic, the key or headers, and none is left for the value of "
                    "the record",
                    "remove a column from headers, or select one more",
                )
            ]
        if self.format == "json":
            return list(json_key_problems(body))
        return [
            Problem(
                None,
                f"a CSV line cannot contain column '{name}' of type {kind}",
                f"write it as text in the view: to_json({name}) AS {name}, or use format: json",
            )
            for name, kind in body.items()
            if "variant" in type_names(kind)
        ]

    @classmethod
    def of_spark(
        cls,
        columns: Mapping[str, str],
        options: Mapping[str, str],
        partition_columns: tuple[str, ...],  # noqa: ARG003 - Spark's Kafka sink has no partitionBy
    ) -> list[Problem]:
        """Check the fixed columns of a record. Spark itself looks for them only in the first batch."""
        available = {name.lower(): kind for name, kind in columns.items()}
        option_names = {key.lower() for key in options}
        problems = []
        if "value" not in available:
            problems.append(
                Problem(
                    None,
                    "Spark's Kafka sink needs a column 'value'; the query has " + ", ".join(columns),
                    "add it: select(to_json(struct('*')).alias('value'))",
                )
            )
        problems += [
            Problem(
                None,
                f"Spark's Kafka sink needs {name} as text or bytes; it is {available[name]}",
                f"cast it: CAST({name} AS STRING) AS {name}",
            )
            for name in ("key", "value")
            if outer_type(available.get(name, "string")) not in ("string", "binary", "char", "varchar")
        ]
        if "topic" not in available and "topic" not in option_names:
            problems.append(
                Problem(
                    None,
                    "Spark's Kafka sink has no topic",
                    "add .option('topic', …), or a column 'topic'",
                )
            )
        if "kafka.transactional.id" in option_names:
            problems.append(
                Problem(
                    None,
                    "Spark's Kafka sink cannot write in transactions",
                    "remove the option kafka.transactional.id",
                    "it begins no transaction, and a producer with that option sends only within one",
                )
            )
        return problems

    def producing(self) -> dict[str, str]:
        """Return the options under librdkafka's names, for the transactional producer."""
        return {PRODUCER_OPTIONS[key.lower()]: value for key, value in to_strings(self.options).items()}

    def with_strongest_guarantee(self) -> Self:
        """Return the transactional sink."""
        return self.model_copy(update={"transactional": True})

    def needs(self) -> list[RequiredResource]:
        """Return the topic, if it is fixed."""
        servers = ",".join(self.bootstrap_servers)
        return [RequiredResource("kafka", "topic", self.topic, at=servers)] if self.topic else []

    def location(self) -> str:
        """Return the brokers."""
        return ",".join(sorted(self.bootstrap_servers))

    def matches_identity(self, identity: Mapping[str, str]) -> bool:
        """Return whether topic and brokers are the same, in any order of brokers."""
        brokers = set(identity.get("bootstrap_servers", "").split(","))
        return identity.get("target") == self.target() and brokers == set(self.bootstrap_servers)

    def identity(self) -> dict[str, str]:
        """Return brokers and topic."""
        return {
            "kind": self.kind,
            "target": self.target(),
            "bootstrap_servers": ",".join(self.bootstrap_servers),
        }

    def ask(self, columns: Mapping[str, str] | None, mode: OutputMode) -> Iterable[ConnectivityFinding]:  # noqa: ARG002 - the same in all
        """Find topic settings that make the broker reject records."""
        from millstream.connectors.kafka.connectivity import check_sink  # noqa: PLC0415 - checking does not connect

        return check_sink(self)

    def probe(self) -> None:
        """Raise `NotReady` if no broker responds or the topic does not exist."""
        from millstream.connectors.kafka.client.admin import describe_topics  # noqa: PLC0415 - checking does not connect

        describe_topics(self, (self.topic,) if self.topic else ())

    @property
    def row_key(self) -> tuple[str, ...]:
        """The columns of `key`."""
        return tuple(self.key)

    @property
    def routed_by(self) -> tuple[str, ...]:
        """The topic column, and the key columns, from which the producer chooses a partition."""
        return (*((self.topic_column,) if self.topic_column else ()), *self.key)

    def in_sandbox(self, sandbox: Sandbox) -> Sink | None:
        """Use a sandbox topic and ledger; None if the rows choose their topics."""
        if self.topic is None:
            return None
        ledger = sandbox.name(self.ledger_topic)
        return self.model_copy(update={"topic": sandbox.name(self.topic), "ledger_topic": ledger})

    def failpoints(self) -> tuple[str, ...]:
        """Leave out `kafka.sent` without transactions: the records are then visible as soon as they are sent."""
        return tuple(point for point in super().failpoints() if self.transactional or point != "kafka.sent")

    def read_all(self, spark: SparkSession, schema: StructType, mode: OutputMode) -> DataFrame | None:
        """Read committed JSON records and their headers; in update mode, the last record of each key."""
        from millstream.connectors.kafka.sandbox_io import read_committed  # noqa: PLC0415 - as the writer

        return read_committed(self, spark, schema, mode) if self.format == "json" else None

    def read_time_range(
        self, spark: SparkSession, schema: StructType, mode: OutputMode, time_range: EventTimeRange
    ) -> DataFrame | None:
        """Read the same rows as `read_all`; raise `NotReady` if the topic does not exist."""
        self.probe()
        return super().read_time_range(spark, schema, mode, time_range)

    def stored_values(self, schema: StructType) -> dict[str, str]:
        """Convert to JSON and back, if the records are JSON."""
        from millstream.connectors.kafka.sandbox_io import stored_values  # noqa: PLC0415 - as the writer

        return stored_values(self, schema) if self.format == "json" else {}

    def into(self, name: str) -> Sink | None:
        """Write to another topic of the same brokers."""
        return self.model_copy(update={"topic": name, "topic_column": None})

    def backfill_conflict(self, mode: OutputMode) -> str:  # noqa: ARG002 - the same in both
        """Refuse a backfill, because a topic keeps its records in the order of writing."""
        return "its readers would get old records after newer ones, and a record that was read cannot be withdrawn"

    def replaces_table(self, mode: OutputMode) -> bool:
        """Replace rows only in update mode; in append mode several records may share a key."""
        return bool(self.row_key) and mode is OutputMode.UPDATE

    def prepare(self) -> None:
        """Create the topic if it does not exist."""
        from millstream.connectors.kafka.sandbox_io import create_topic  # noqa: PLC0415 - loads the client

        create_topic(self, self.topic or "")

    def discard(self) -> None:
        """Delete the topic and its ledger."""
        from millstream.connectors.kafka.sandbox_io import delete_topics  # noqa: PLC0415 - loads the client

        delete_topics(self, [self.topic or "", self.ledger_topic])

    def clear_command(self) -> str:
        """Recreating the topic deletes its records; commit entries are in another topic."""
        return f"delete and recreate {self.target()}"

    def target(self) -> str:
        """Return the topic, or the column that contains it."""
        return self.topic or f"topics of {self.topic_column}"

    def rows(self, limit: int) -> tuple[list[str], list[list[object]]] | None:
        """Return the topic's latest records: the fields of JSON values, or else key and value."""
        from millstream.connectors.kafka.latest_records import read_latest_rows  # noqa: PLC0415 - loads the client

        return read_latest_rows(self, limit) if self.topic else None
