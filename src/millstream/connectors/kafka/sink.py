"""The Kafka sink: each row of a batch becomes a record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from millstream.connectors.ddl import outer, within
from millstream.connectors.kafka import avro
from millstream.connectors.kafka.broker import Broker
from millstream.connectors.kafka.options import problems as option_problems
from millstream.connectors.kafka.options import text
from millstream.connectors.sink import Sink, SinkIdentity, Writer
from millstream.connectors.source import Need, Problem
from millstream.spec.avro import Avro
from millstream.spec.guarantee import Guarantee
from millstream.spec.mode import OutputMode
from millstream.spec.names import Names

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from millstream.connectors.asking import Remark
    from millstream.connectors.cut import Cut
    from millstream.connectors.dataset import Dataset
    from millstream.connectors.elsewhere import Place

_FIELDS = {
    "kafka.bootstrap.servers": "bootstrap_servers",
    "topic": "topic",
    "includeheaders": "headers",
    "kafka.security.protocol": "security: {protocol: …}",
    "kafka.sasl.mechanism": "security: {mechanism: …}",
    "kafka.sasl.jaas.config": "security: {username: …, password: …}",
}
# Options of Java's producer that the other one has too, and its names for them.
_PRODUCER = {
    "kafka.client.id": "client.id",
    "kafka.compression.type": "compression.type",
    "kafka.linger.ms": "linger.ms",
    "kafka.batch.size": "batch.size",
    "kafka.max.request.size": "message.max.bytes",
    "kafka.request.timeout.ms": "request.timeout.ms",
}


class KafkaSink(Broker, Sink):
    """A Kafka topic, or one topic a row."""

    kind = "kafka"
    server = "kafka"
    main = "topic"
    modes = frozenset({OutputMode.APPEND, OutputMode.UPDATE})
    in_tasks = True
    flows = frozenset({"continuous", "real_time"})

    topic: str | None = Field(default=None, examples=["funnel"])
    """The topic that every record goes to."""
    topic_column: str | None = None
    """A column that names the topic of its row, instead of one topic."""
    key: Names = ()
    """The record's key: one column as text (bytes as they are), several as a JSON object. None: no key."""
    format: Literal["json", "csv", "avro", "raw"] = "json"
    """The record's value: `json` an object with every field, nulls too; `csv` a line; `avro` a record in Avro's
    binary form; `raw` one column."""
    avro_value: Avro | None = None
    """With `format: avro`, the schema that values are written in and what stands before them."""
    value: str | None = None
    """With `format: raw`, the column whose text or bytes are the value; `value` unless given."""
    headers: dict[str, str] = Field(default_factory=dict, examples=[{"trace-id": "trace_id"}])
    """Headers of the record: name of the header and the column it is taken from."""
    format_options: dict[str, str] = Field(default_factory=dict, examples=[{"timestampFormat": "yyyy-MM-dd"}])
    """Options of Spark's JSON or CSV writer, such as `timestampFormat` or `sep`."""
    transactional: bool = False
    """Each batch in one transaction, for readers at `read_committed`; `guarantee: exactly-once` sets it."""
    ledger_topic: str = "_millstream_ledger"
    """Where transactional sinks remember their batches; a compacted topic of one partition, made if missing."""

    def writer(self, identity: SinkIdentity) -> Writer:
        """A writer on Spark's own Kafka producer, or one in the driver that commits transactions."""
        if self.transactional:
            from millstream.connectors.kafka.transactions import TransactionalWriter  # noqa: PLC0415 - as below

            return TransactionalWriter(self, identity)
        from millstream.connectors.kafka.writer import KafkaWriter  # noqa: PLC0415 - checking needs no writer

        return KafkaWriter(self, identity)

    def guarantee(self, mode: OutputMode) -> tuple[Guarantee, str]:  # noqa: ARG002 - the same in both
        """At-least-once; exactly-once for readers of committed records when transactional."""
        if self.transactional:
            return (
                Guarantee.EXACTLY_ONCE,
                "a batch's records and its mark in the ledger are one transaction; readers must set "
                "isolation.level=read_committed",
            )
        return (
            Guarantee.AT_LEAST_ONCE,
            "records are acknowledged by all replicas before the batch is committed, and a batch that is "
            "replayed after a crash is sent again under the same millstream-batch header",
        )

    def problems(self, mode: OutputMode) -> list[Problem]:
        """No topic or two, a value that the format does not take, a key that an updated row needs."""
        found = self.broker_problems() + option_problems(self.options, _FIELDS)
        if self.transactional:
            found += [
                Problem(
                    "options",
                    f"a transactional kafka sink does not know option '{key}'",
                    f"leave it out; it takes {', '.join(_PRODUCER)}",
                )
                for key in self.options
                if key.lower() not in _PRODUCER
            ]
        if (self.topic is None) == (self.topic_column is None):
            found.append(
                Problem(
                    "topic", "kafka needs a topic", "add topic: NAME, or topic_column for one topic a row"
                )
                if self.topic is None
                else Problem("topic_column", "kafka has both a topic and a topic_column", "keep one of them")
            )
        if self.value is not None and self.format != "raw":
            found.append(
                Problem("value", f"format {self.format} makes the value of all columns", "set format: raw")
            )
        if self.format in ("raw", "avro") and self.format_options:
            found.append(Problem("format_options", f"format {self.format} has no options", "leave them out"))
        found += avro.problems(self.format, self.avro_value)
        if mode is OutputMode.UPDATE and not self.key:
            found.append(
                Problem(
                    "key",
                    "kafka in update mode needs to know the key of a row",
                    "add key with the columns that tell one row from another",
                    "a row comes again whenever it changes; a reader tells its latest version by the key",
                )
            )
        return found

    def unflowing(self) -> list[Problem]:
        """Transactions: each is one batch."""
        if not self.transactional:
            return []
        return [
            Problem(
                "transactional",
                "a transaction of kafka is one batch, and there are none",
                "leave out transactional, and guarantee: exactly-once, which asks for it",
            )
        ]

    def writes_to(self) -> frozenset[str]:
        """The topic with its brokers, when it is fixed."""
        return frozenset({self.place_of(self.topic)}) if self.topic else frozenset()

    def datasets(self) -> tuple[Dataset, ...]:
        """The topic, when it is fixed."""
        return self.datasets_of([self.topic] if self.topic else [])

    def cautions(self, mode: OutputMode) -> list[Problem]:  # noqa: ARG002 - the same in both
        """Options of the client with which a broker may lose or double what it was sent."""
        found = []
        for key, value in self.options.items():
            low, said = key.lower(), str(value).lower()
            if low == "kafka.acks" and said in ("0", "1"):
                without = "no broker" if said == "0" else "only one broker"
                found.append(
                    Problem(
                        "options",
                        f"with {key}={said} {without} says that it has a record before the batch is committed",
                        f"leave {key} out: all replicas then say so",
                        "records are lost when the broker fails, and the checkpoint counts them as written",
                        key,
                    )
                )
            if low == "kafka.enable.idempotence" and said == "false":
                found.append(
                    Problem(
                        "options",
                        f"with {key}=false the client doubles and reorders records when it tries again",
                        f"leave {key} out",
                        key=key,
                    )
                )
        return found

    def named(self) -> Mapping[str, tuple[str, ...]]:
        """What records are made of beside the columns that come."""
        return {
            "topic_column": (self.topic_column,) if self.topic_column else (),
            "key": self.key,
            "headers": tuple(self.headers.values()),
            "value": (self.value or "value",) if self.format == "raw" else (),
        }

    def refuses(self, columns: Mapping[str, str]) -> list[Problem]:
        """A value that is neither text nor bytes, a type that CSV has not, no column left for the value."""
        raw = self.value or "value"
        if self.format == "raw":
            if raw not in columns or outer(columns[raw]) in ("string", "binary", "char", "varchar"):
                return []
            return [
                Problem(
                    "value" if self.value else "format",
                    f"a raw value is text or bytes, and column '{raw}' is {columns[raw]}",
                    f"cast it in the view: CAST({raw} AS STRING) AS {raw}, or use format: json",
                )
            ]
        body = {
            name: kind
            for name, kind in columns.items()
            if name not in {self.topic_column, *self.headers.values()}
        }
        if self.avro_value is not None:
            return avro.misfits(self.avro_value, body)
        if not body:
            return [
                Problem(
                    "headers",
                    "no column is left for the record's value",
                    "take a column out of headers, or select one more",
                )
            ]
        return [
            Problem(
                None,
                f"a line of CSV cannot hold column '{name}' of type {kind}",
                f"write it as text in the view: to_json({name}) AS {name}, or use format: json",
            )
            for name, kind in body.items()
            if self.format == "csv" and "variant" in within(kind)
        ]

    @classmethod
    def of_spark(
        cls,
        columns: Mapping[str, str],
        options: Mapping[str, str],
        divided: tuple[str, ...],  # noqa: ARG003 - Spark's Kafka sink has no partitionBy
    ) -> list[Problem]:
        """A record is made of columns with fixed names; Spark looks for them in the first batch."""
        held = {name.lower(): kind for name, kind in columns.items()}
        given = {key.lower() for key in options}
        found = []
        if "value" not in held:
            found.append(
                Problem(
                    None,
                    "Spark's Kafka sink takes a column 'value', and the query gives " + ", ".join(columns),
                    "make one: select(to_json(struct('*')).alias('value'))",
                )
            )
        found += [
            Problem(
                None,
                f"Spark's Kafka sink takes {name} as text or bytes, and here it is {held[name]}",
                f"cast it: CAST({name} AS STRING) AS {name}",
            )
            for name in ("key", "value")
            if outer(held.get(name, "string")) not in ("string", "binary", "char", "varchar")
        ]
        if "topic" not in held and "topic" not in given:
            found.append(
                Problem(
                    None,
                    "Spark's Kafka sink has no topic",
                    "add .option('topic', …), or a column 'topic' of the rows",
                )
            )
        if "kafka.transactional.id" in given:
            found.append(
                Problem(
                    None,
                    "Spark's Kafka sink cannot write in transactions",
                    "remove the option kafka.transactional.id",
                    "it begins none, and a producer with that option refuses to send outside of one",
                )
            )
        return found

    def producing(self) -> dict[str, str]:
        """The options in the words of the producer that commits transactions."""
        return {_PRODUCER[key.lower()]: value for key, value in text(self.options).items()}

    def stronger(self) -> Sink:
        """The transactional sink."""
        return self.model_copy(update={"transactional": True})

    def needs(self) -> list[Need]:
        """The topic, when it is fixed."""
        return [Need("kafka", "topic", self.topic, at=",".join(self.bootstrap_servers))] if self.topic else []

    def identity(self) -> dict[str, str]:
        """Brokers and topic."""
        return {
            "kind": self.kind,
            "target": self.target(),
            "bootstrap_servers": ",".join(self.bootstrap_servers),
        }

    def ask(self, columns: Mapping[str, str] | None, mode: OutputMode) -> Iterable[Remark]:  # noqa: ARG002 - the same in all
        """What the topic will refuse."""
        from millstream.connectors.kafka.ask import of_sink  # noqa: PLC0415 - checking asks nobody

        return of_sink(self)

    def probe(self) -> None:
        """Raises `NotReady` when no broker answers or the topic does not exist."""
        from millstream.connectors.kafka.admin import look  # noqa: PLC0415 - checking asks nobody

        look(self, (self.topic,) if self.topic else ())

    @property
    def row_key(self) -> tuple[str, ...]:
        """The columns of `key`."""
        return tuple(self.key)

    @property
    def routed_by(self) -> tuple[str, ...]:
        """The column that names the topic, and the key, by which the producer chooses a partition."""
        return (*((self.topic_column,) if self.topic_column else ()), *self.key)

    def elsewhere(self, place: Place) -> Sink | None:
        """A topic of its own, and a ledger; None where rows name their topics."""
        if self.topic is None:
            return None
        ledger = place.name(self.ledger_topic)
        return self.model_copy(update={"topic": place.name(self.topic), "ledger_topic": ledger})

    def moments(self) -> tuple[str, ...]:
        """Without a transaction there is nothing between sending and being there."""
        return tuple(one for one in super().moments() if self.transactional or one != "kafka.sent")

    def whole(self, spark: SparkSession, schema: StructType, mode: OutputMode) -> DataFrame | None:
        """The committed records, where values are JSON, with their headers; in update mode the last of each key."""
        from millstream.connectors.kafka.feeding import committed  # noqa: PLC0415 - as the writer

        return committed(self, spark, schema, mode) if self.format == "json" else None

    def held(self, spark: SparkSession, schema: StructType, mode: OutputMode, cut: Cut) -> DataFrame | None:
        """As `whole`; raises `NotReady` when there is no such topic."""
        self.probe()
        return super().held(spark, schema, mode, cut)

    def into(self, name: str) -> Sink | None:
        """Another topic of the same brokers."""
        return self.model_copy(update={"topic": name, "topic_column": None})

    def apart(self, mode: OutputMode) -> str:  # noqa: ARG002 - the same in both
        """A topic has one order, and it is that of its writing."""
        return "its readers would get old records behind newer ones, and what is read cannot be taken back"

    def replaces(self, mode: OutputMode) -> bool:
        """Only in update mode: elsewhere a key says which partition, and several records may share one."""
        return bool(self.row_key) and mode is OutputMode.UPDATE

    def prepare(self) -> None:
        """Make its topic, unless it is there."""
        from millstream.connectors.kafka.feeding import make  # noqa: PLC0415 - loads the client

        make(self, self.topic or "")

    def discard(self) -> None:
        """Delete its topic and its ledger."""
        from millstream.connectors.kafka.feeding import remove  # noqa: PLC0415 - loads the client

        remove(self, [self.topic or "", self.ledger_topic])

    def clearing(self) -> str:
        """The topic's records go with the topic; a commit's mark stands in another."""
        return f"delete and make again {self.target()}"

    def target(self) -> str:
        """The topic, or the column that names it."""
        return self.topic or f"topics of {self.topic_column}"

    def rows(self, limit: int) -> tuple[list[str], list[list[object]]] | None:
        """The latest records of the topic: their fields when they are JSON, else key and value."""
        from millstream.connectors.kafka.look import latest  # noqa: PLC0415 - loads the client

        return latest(self, limit) if self.topic else None
