"""The Kafka source: records of topics, read as a stream, as a table, or one batch again."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal

from pydantic import AwareDatetime, Field

from millstream.connectors.kafka import halving
from millstream.connectors.kafka.broker import Broker, CommaNames
from millstream.connectors.kafka.options import READER
from millstream.connectors.kafka.options import problems as option_problems
from millstream.connectors.source import Gap, Need, OffsetRange, Problem, Recent, Replay, Replays, Source
from millstream.spec.duration import Duration

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from millstream.connectors.asking import Begun, Remark
    from millstream.connectors.dataset import Dataset
    from millstream.connectors.elsewhere import Fed, Place
    from millstream.connectors.letters import Letter

Offsets = dict[str, dict[int, int]]

_COLUMNS = (
    "key BINARY, value BINARY, topic STRING, partition INT, offset BIGINT, "
    "timestamp TIMESTAMP, timestampType INT"
)
# Spark's options that may stand beside those of the client.
_BESIDE = (
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
    "kafkaConsumer.pollTimeoutMs",
    "maxRecordsPerPartition",
    "startingOffsetsByTimestampStrategy",
)
_FIELDS = {
    "kafka.bootstrap.servers": "bootstrap_servers",
    "subscribe": "subscribe",
    "subscribepattern": "subscribe_pattern",
    "assign": "assign",
    "startingoffsets": "starting_offsets",
    "startingtimestamp": "starting_timestamp",
    "maxoffsetspertrigger": "max_offsets_per_trigger",
    "minoffsetspertrigger": "min_offsets_per_trigger",
    "maxtriggerdelay": "max_trigger_delay",
    "minpartitions": "min_partitions",
    "failondataloss": "fail_on_data_loss",
    "kafka.group.id": "group_id",
    "groupidprefix": "group_id_prefix",
    "includeheaders": "include_headers",
    "kafka.security.protocol": "security: {protocol: …}",
    "kafka.sasl.mechanism": "security: {mechanism: …}",
    "kafka.sasl.jaas.config": "security: {username: …, password: …}",
}


class KafkaSource(Broker, Source):
    """Records of one or more Kafka topics, each a row."""

    kind = "kafka"
    server = "kafka"
    fed = True
    main = "subscribe"
    static = True
    replayable = True
    reread = True
    payload = True
    flows = frozenset({"continuous", "real_time"})
    bounds = ("min_offsets_per_trigger", "max_offsets_per_trigger", "max_trigger_delay", "min_partitions")
    columns = _COLUMNS
    place = ("topic", "partition", "offset")

    subscribe: CommaNames = ()
    """Topics to read, by name; one text with commas or a list."""
    subscribe_pattern: str | None = Field(default=None, examples=["orders-.*"])
    """Topics to read, as a regular expression of Java that names must match whole."""
    assign: dict[str, list[int]] | None = Field(default=None, examples=[{"clicks": [0, 1]}])
    """Partitions to read, by topic."""
    starting_offsets: Literal["earliest", "latest"] | Offsets = Field(
        default="earliest", examples=["earliest", {"clicks": {"0": 1200}}]
    )
    """Where a fresh checkpoint starts: `earliest`, `latest`, or an offset for each partition of each topic
    (-2 oldest, -1 newest). A checkpoint that exists goes on from its own offsets."""
    starting_timestamp: AwareDatetime | None = Field(default=None, examples=["2026-01-01T00:00:00Z"])
    """Start a fresh checkpoint at the first record with this timestamp or a later one; needs a zone."""
    max_offsets_per_trigger: int | None = Field(default=None, ge=1)
    """At most this many records a batch, shared among partitions by how far behind each is."""
    min_offsets_per_trigger: int | None = Field(default=None, ge=1)
    """Wait for this many records before a batch starts, at most for `max_trigger_delay`."""
    max_trigger_delay: Duration | None = None
    """How long a batch may wait for `min_offsets_per_trigger`; 15 minutes unless given."""
    min_partitions: int | None = Field(default=None, ge=1)
    """At least this many Spark tasks a batch; large partitions are read in pieces."""
    fail_on_data_loss: bool = True
    """Stop when records were deleted before they were read; false goes on without them and without a word."""
    group_id: str | None = None
    """A fixed consumer group, where the broker's rights ask for one. Spark assigns partitions by itself: queries
    that share a group still read all records each."""
    group_id_prefix: str | None = None
    """What the consumer groups that Spark makes begin with."""
    include_headers: bool = False
    """Read the records' headers too; wanted by `keep: [headers]`."""

    def read(self, spark: SparkSession, *, static: bool, schema: str | None) -> DataFrame:  # noqa: ARG002 - bytes have no schema
        """Rows of `columns`, and `headers` when they are included.

        A static read takes all records from `starting_offsets` to the newest at the moment a batch is planned.
        """
        reader: Any = spark.read if static else spark.readStream
        start = self._start(static=static)
        return reader.format("kafka").options(**self._client(), **self._chosen(), **start).load()  # type: ignore[no-any-return]

    def read_range(self, spark: SparkSession, offsets: OffsetRange, schema: str | None) -> DataFrame | None:  # noqa: ARG002
        """Exactly the records of one batch; a partition that `start` does not name, from its oldest."""
        start, end = halving.bounds(offsets)
        chosen = {
            "assign": json.dumps({topic: sorted(map(int, parts)) for topic, parts in end.items()}),
            "startingOffsets": json.dumps(start),
            "endingOffsets": json.dumps(end),
            "includeHeaders": "true",
        }
        return spark.read.format("kafka").options(**{**self._client(), **chosen}).load()

    def pieces(self, offsets: OffsetRange) -> list[str]:
        """`partition 0 of topic 'clicks', offsets 100 to 199` for each partition with records."""
        return halving.pieces(*halving.bounds(offsets))

    def halves(self, offsets: OffsetRange) -> tuple[OffsetRange, OffsetRange] | None:
        """Half of the partitions, or half of the offsets of the one that is left."""
        return halving.halves(*halving.bounds(offsets))

    def resend(self, topic: str, letters: Sequence[Letter]) -> bool:
        """Send them to a topic of the same broker, each with its key and headers."""
        from millstream.connectors.kafka.resend import resend  # noqa: PLC0415 - loads the client

        resend(self, topic, letters)
        return True

    def newest(self, records: int) -> KafkaSource:
        """From so many records before the end, shared among the partitions of the topics it names.

        Raises `NotReady` when the broker does not answer or a topic is missing.
        """
        from millstream.connectors.kafka.look import tails  # noqa: PLC0415 - loads the client

        if not self.topics:
            return self
        start = tails(self, self.topics, records)
        return self.model_copy(update={"starting_offsets": start, "starting_timestamp": None, "assign": None,
                                       "subscribe": self.topics})  # fmt: skip

    def recent(self, limit: int) -> list[Recent] | None:
        """The last records of its topics; None where they are given by a pattern."""
        from millstream.connectors.kafka.look import recent  # noqa: PLC0415 - loads the client

        return recent(self, self.topics, limit) if self.topics else None

    def oldest(self) -> KafkaSource:
        """From the oldest records that the broker has."""
        return self.model_copy(update={"starting_offsets": "earliest", "starting_timestamp": None})

    def forgotten(self) -> list[Gap]:
        """What stood below the oldest offset of each partition."""
        from millstream.connectors.kafka.gone import forgotten  # noqa: PLC0415 - loads the client

        return forgotten(self)

    def elsewhere(self, place: Place) -> Source | None:
        """Topics of its own, from their oldest records; None where topics are not given by name."""
        if not self.subscribe:
            return None
        moved = {"subscribe": tuple(map(place.name, self.subscribe)), "starting_offsets": "earliest"}
        return self.model_copy(update={**moved, "starting_timestamp": None, "group_id": None})

    def feed(self, records: Sequence[Fed], number: int, columns: Mapping[str, str]) -> None:  # noqa: ARG002 - bytes
        """Send them, each to its topic or else to the first, and wait until the broker has them."""
        from millstream.connectors.kafka.feeding import send  # noqa: PLC0415 - loads the client

        send(self, self.subscribe[0], records)

    def takes_from(self, topic: str) -> bool:
        """Is it one of its topics?"""
        return topic in self.topics

    def discard(self) -> None:
        """Delete its topics."""
        from millstream.connectors.kafka.feeding import remove  # noqa: PLC0415 - loads the client

        remove(self, self.subscribe)

    def replay(self, *, static: bool) -> Replay:
        """From the offsets in the checkpoint; with `fail_on_data_loss: false` gaps go unnoticed."""
        if static or self.fail_on_data_loss:
            return super().replay(static=static)
        return Replay(
            Replays.NONE,
            "goes on without records that were deleted before they were read, and says nothing",
            "fail_on_data_loss",
        )

    def begins(self) -> str:
        """The starting offsets, and what they do not say."""
        if self.starting_timestamp is not None:
            start = f"at the first record from {self.starting_timestamp.isoformat()}"
        elif isinstance(self.starting_offsets, dict):
            start = "at the offsets that are given"
        else:
            start = f"at the {'oldest' if self.starting_offsets == 'earliest' else 'newest'} records"
        return f"starts {start}; a partition that is added later is read from its oldest record"

    def problems(self) -> list[Problem]:
        """Topics chosen in no way or in two, settings that exclude each other, options that are not taken."""
        found = self.broker_problems() + option_problems(self.options, _FIELDS, _BESIDE)
        given = [name for name in ("subscribe", "subscribe_pattern", "assign") if getattr(self, name)]
        if not given:
            found.append(Problem("subscribe", "kafka reads no topic", "name one: subscribe: TOPIC"))
        if len(given) > 1:
            found.append(
                Problem(given[1], f"kafka is told topics by {' and '.join(given)}", "keep one of them")
            )
        if self.starting_timestamp is not None and "starting_offsets" in self.model_fields_set:
            found.append(
                Problem(
                    "starting_timestamp",
                    "starting_offsets and starting_timestamp both say where to start",
                    "keep one of them",
                )
            )
        if self.max_trigger_delay is not None and self.min_offsets_per_trigger is None:
            found.append(
                Problem(
                    "max_trigger_delay",
                    "max_trigger_delay bounds a wait that nothing asks for",
                    "add min_offsets_per_trigger, or leave it out",
                )
            )
        least, most = self.min_offsets_per_trigger, self.max_offsets_per_trigger
        if least is not None and most is not None and least > most:
            found.append(
                Problem(
                    "min_offsets_per_trigger",
                    f"a batch of at least {least} records and at most {most} cannot be",
                    "raise max_offsets_per_trigger",
                )
            )
        return found + self._unnamed_offsets()

    def losses(self) -> list[Problem]:
        """`fail_on_data_loss: false`."""
        if self.fail_on_data_loss:
            return []
        return [
            Problem(
                "fail_on_data_loss",
                "records that the broker deleted before they were read are passed over without a word",
                "leave out fail_on_data_loss: the query then ends at a gap and says where it is",
                "retention, a topic made anew and an unclean leader all leave gaps; nothing else tells of them",
                instead="true",
            )
        ]

    def surplus(self) -> list[Problem]:
        """An isolation level below `read_committed`."""
        return [
            Problem(
                "options",
                f"'{key}: {value}' hands out records of transactions that were aborted",
                "leave it out: read_committed is what is set otherwise",
                "a producer that failed writes its records again in its next transaction, so they come twice",
                key,
                "read_committed",
            )
            for key, value in self.options.items()
            if key.lower() == "kafka.isolation.level" and value != "read_committed"
        ]

    def limited(self) -> bool:
        """With `max_offsets_per_trigger`, or Spark's option for records of a partition."""
        return self.max_offsets_per_trigger is not None or "maxRecordsPerPartition" in self.options

    def reads_from(self) -> frozenset[str]:
        """Topics that are named, each with the brokers."""
        return frozenset(self.place_of(topic) for topic in self.topics)

    def datasets(self) -> tuple[Dataset, ...]:
        """Topics that are named."""
        return self.datasets_of(self.topics)

    def needs(self) -> list[Need]:
        """The topics it names; a pattern names none."""
        return [Need("kafka", "topic", name, at=",".join(self.bootstrap_servers)) for name in self.topics]

    def identity(self) -> dict[str, str]:
        """Brokers and topics."""
        return {
            "kind": self.kind,
            "bootstrap_servers": ",".join(self.bootstrap_servers),
            "topics": self.subscribe_pattern or ",".join(self.topics),
        }

    def probe(self) -> dict[str, str]:
        """The topics' ids and partition counts: `topic.<name>` and `partitions.<name>`."""
        from millstream.connectors.kafka.admin import look  # noqa: PLC0415 - checking asks nobody

        return look(self, self.topics, pattern=self.subscribe_pattern, partitions=self.assign)

    def ask(self, *, static: bool, begun: Sequence[Begun], fresh: Sequence[str]) -> Iterable[Remark]:
        """Topics, how long they keep what, and whether they are those that the checkpoints began with."""
        from millstream.connectors.kafka.ask import of_source  # noqa: PLC0415 - loads the client

        return of_source(self, static=static, begun=begun, fresh=fresh)

    def another(self, told: Mapping[str, str], now: Mapping[str, str]) -> str | None:
        """A topic whose id differs: it was deleted and made again."""
        for key, known in told.items():
            if key.startswith("topic.") and now.get(key, known) != known:
                return f"topic '{key.partition('.')[2]}' was deleted and made again"
        return None

    def gaps(self, start: str) -> list[Gap]:
        """Offsets below the oldest record of their partition."""
        from millstream.connectors.kafka.gone import gaps  # noqa: PLC0415 - loads the client

        return gaps(self, json.loads(start) or {})

    def lenient(self) -> KafkaSource:
        """With `fail_on_data_loss: false`."""
        return self.model_copy(update={"fail_on_data_loss": False})

    def describe(self) -> str:
        """`kafka clicks`."""
        return f"kafka {self.subscribe_pattern or ', '.join(self.topics)}".strip()

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics that are named."""
        return tuple(self.assign) if self.assign else self.subscribe

    def _client(self) -> dict[str, str]:
        """What every read has in common."""
        made = {
            **READER,
            **self.client(),
            "failOnDataLoss": str(self.fail_on_data_loss).lower(),
            "includeHeaders": str(self.include_headers).lower(),
        }
        optional = {"minPartitions": self.min_partitions, "kafka.group.id": self.group_id}
        optional["groupIdPrefix"] = self.group_id_prefix
        return made | {key: str(value) for key, value in optional.items() if value is not None}

    def _chosen(self) -> dict[str, str]:
        """Which topics."""
        if self.assign:
            return {"assign": json.dumps(self.assign)}
        if self.subscribe_pattern:
            return {"subscribePattern": self.subscribe_pattern}
        return {"subscribe": ",".join(self.subscribe)}

    def _start(self, *, static: bool) -> dict[str, str]:
        """Where to start and how much a batch takes."""
        made: dict[str, str] = {}
        if self.starting_timestamp is not None:
            made["startingTimestamp"] = str(int(self.starting_timestamp.timestamp() * 1000))
            # A partition with no record that young would otherwise end the query at its start.
            made["startingOffsetsByTimestampStrategy"] = "latest"
            made |= {key: str(value) for key, value in self.options.items() if key in made}
        elif isinstance(self.starting_offsets, dict):
            made["startingOffsets"] = json.dumps(self.starting_offsets)
        elif not static:
            made["startingOffsets"] = self.starting_offsets
        if not static:
            limits = {
                "maxOffsetsPerTrigger": self.max_offsets_per_trigger,
                "minOffsetsPerTrigger": self.min_offsets_per_trigger,
                "maxTriggerDelay": self.max_trigger_delay and f"{self.max_trigger_delay.micros // 1000}ms",
            }
            made |= {key: str(value) for key, value in limits.items() if value is not None}
        return made

    def _unnamed_offsets(self) -> list[Problem]:
        """Starting offsets for topics that are not read."""
        if not isinstance(self.starting_offsets, dict) or self.subscribe_pattern:
            return []
        return [
            Problem(
                "starting_offsets",
                f"topic '{topic}' is not read here",
                f"choose among {', '.join(self.topics)}",
            )
            for topic in self.starting_offsets
            if topic not in self.topics
        ]
