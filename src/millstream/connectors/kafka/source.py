"""Kafka source: read the records of topics as a stream, as a static table, or one batch again."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal

from pydantic import AwareDatetime, Field

from millstream.connectors.api.source import Source
from millstream.connectors.api.values.problem import Problem, RequiredResource
from millstream.connectors.api.values.replay_behaviour import Replayability, ReplayBehaviour
from millstream.connectors.kafka.client.broker import RECORD_COLUMNS, Broker, CommaNames
from millstream.connectors.kafka.client.options import BESIDE, READER, SOURCE_FIELDS, pattern_problems
from millstream.connectors.kafka.client.options import problems as option_problems
from millstream.connectors.kafka.offsets import offset_split
from millstream.connectors.kafka.offsets.batch_limit import suggest_limit
from millstream.connectors.kafka.offsets.positions import KafkaPositions
from millstream.connectors.kafka.system import KAFKA
from millstream.spec.duration import Duration

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from millstream.connectors.api.dead_letters import DeadLetter
    from millstream.connectors.api.values.connectivity import CheckpointedSource, ConnectivityFinding
    from millstream.connectors.api.values.lineage_dataset import LineageDataset
    from millstream.connectors.api.values.offsets import BatchLimit, EndOffsets, OffsetGap, OffsetRange
    from millstream.connectors.api.values.recent_message import RecentMessage
    from millstream.connectors.api.values.sandbox import InputRecord, Sandbox

Offsets = dict[str, dict[int, int]]


class KafkaSource(Broker, KafkaPositions, Source):
    """Records of one or more Kafka topics, each a row."""

    kind = "kafka"
    server = "kafka"
    system = KAFKA
    is_feedable = True
    main = "subscribe"
    can_read_once = True
    is_replayable = True
    is_reread_each_batch = True
    has_payload = True
    flows = frozenset({"continuous", "real_time"})
    bounds = ("min_offsets_per_trigger", "max_offsets_per_trigger", "max_trigger_delay", "min_partitions")
    columns = RECORD_COLUMNS
    place = ("topic", "partition", "offset")

    subscribe: CommaNames = ()
    """Topics to read, by name: a list, or one text with commas."""
    subscribe_pattern: str | None = Field(default=None, examples=["orders-.*"])
    """Topics to read, as a regular expression of Java and Python that must match the whole name."""
    assign: dict[str, list[int]] | None = Field(default=None, examples=[{"clicks": [0, 1]}])
    """Partitions to read, by topic."""
    starting_offsets: Literal["earliest", "latest"] | Offsets = Field(
        default="earliest", examples=["earliest", {"clicks": {"0": 1200}}]
    )
    """Where a query with a new checkpoint starts: `earliest`, `latest`, or an offset for each partition of each topic
    (-2 oldest, -1 newest). A query with an existing checkpoint resumes from its own offsets."""
    starting_timestamp: AwareDatetime | None = Field(default=None, examples=["2026-01-01T00:00:00Z"])
    """With a new checkpoint, start at the first record with this timestamp or a later one. Needs a time zone."""
    max_offsets_per_trigger: int | None = Field(default=None, ge=1)
    """Maximum number of records per batch. Partitions with more unread records get a larger share."""
    min_offsets_per_trigger: int | None = Field(default=None, ge=1)
    """Wait for this many records before starting a batch, for at most `max_trigger_delay`."""
    max_trigger_delay: Duration | None = None
    """Longest time a batch waits for `min_offsets_per_trigger`. Default: 15 minutes."""
    min_partitions: int | None = Field(default=None, ge=1)
    """Minimum number of Spark tasks per batch; large partitions are split."""
    fail_on_data_loss: bool = True
    """Stop the query if records were deleted before it read them. With `false`, it continues silently without
    them."""
    group_id: str | None = None
    """Fixed consumer group, for brokers whose permissions require one. Spark assigns partitions itself, so queries
    that share a group still each read all records."""
    group_id_prefix: str | None = None
    """Prefix for the names of the consumer groups, which Spark generates."""
    include_headers: bool = False
    """Also read the records' headers; needed for `keep: [headers]`."""

    def read(self, spark: SparkSession, *, static: bool, schema: str | None) -> DataFrame:  # noqa: ARG002 - bytes have no schema
        """Read rows with `columns`, and `headers` if included or if they may be needed for dead letters.

        A static read contains all records from `starting_offsets` to the newest record when a batch is planned.
        """
        reader: Any = spark.read if static else spark.readStream
        options = self._base_options() | self._topic_option() | self._start_options(static=static)
        if not static:
            options["includeHeaders"] = "true"
        return reader.format("kafka").options(**options).load()  # type: ignore[no-any-return]

    def read_range(self, spark: SparkSession, offsets: OffsetRange, schema: str | None) -> DataFrame | None:  # noqa: ARG002
        """Read exactly the records of one batch. A partition missing from `start` is read from its oldest record."""
        start, end = offset_split.offset_bounds(offsets)
        options = {
            "assign": json.dumps({topic: sorted(map(int, parts)) for topic, parts in end.items()}),
            "startingOffsets": json.dumps(start),
            "endingOffsets": json.dumps(end),
            "includeHeaders": "true",
        }
        return spark.read.format("kafka").options(**{**self._base_options(), **options}).load()

    def describe_offsets(self, offsets: OffsetRange) -> list[str]:
        """Describe each partition with records: `partition 0 of topic 'clicks', offsets 100 to 199`."""
        return offset_split.describe_offsets(*offset_split.offset_bounds(offsets))

    def halves(self, offsets: OffsetRange) -> tuple[OffsetRange, OffsetRange] | None:
        """Split by partition, or split the offsets of the only partition."""
        return offset_split.split_offsets(*offset_split.offset_bounds(offsets))

    def resend(self, topic: str, dead_letters: Sequence[DeadLetter]) -> bool:
        """Send the dead letters, with their keys and headers, to a topic of the same broker."""
        from millstream.connectors.kafka.client.resend import resend  # noqa: PLC0415 - loads the client

        resend(self, topic, dead_letters)
        return True

    def newest(self, records: int) -> KafkaSource:
        """Start this many records before the end, divided among the partitions of the named topics.

        Raises `NotReady` if the broker does not respond or a topic does not exist.
        """
        from millstream.connectors.kafka.latest_records import tail_offsets  # noqa: PLC0415 - loads the client

        if not self.topics:
            return self
        start = tail_offsets(self, self.topics, records)
        return self.model_copy(update={"starting_offsets": start, "starting_timestamp": None, "assign": None,
                                       "subscribe": self.topics})  # fmt: skip

    @classmethod
    def topic_settings(cls, topic: str, servers: str, security: Mapping[str, str]) -> dict[str, Any]:
        """Return the settings that read all records of the topic, a part of them per batch."""
        settings = {"bootstrap_servers": servers, "subscribe": topic, "max_offsets_per_trigger": 100_000}
        return {**settings, "security": dict(security)} if security else settings

    def recent(self, limit: int) -> list[RecentMessage] | None:
        """Return the latest records of the named topics, or None if the topics are chosen by a pattern."""
        from millstream.connectors.kafka.latest_records import read_recent_messages  # noqa: PLC0415 - loads the client

        return read_recent_messages(self, self.topics, limit) if self.topics else None

    def watch_end_offsets(self) -> EndOffsets:
        """Watch the end offsets of the topics with one client."""
        from millstream.connectors.kafka.client.end_offsets import EndOffsetWatcher  # noqa: PLC0415 - loads the client

        return EndOffsetWatcher(self, self.topics, self.subscribe_pattern, self.assign)

    def oldest(self) -> KafkaSource:
        """Start from the oldest records of each partition."""
        return self.model_copy(update={"starting_offsets": "earliest", "starting_timestamp": None})

    def forgotten(self) -> list[OffsetGap]:
        """Return the offsets below the oldest record of each partition."""
        from millstream.connectors.kafka.offsets.expired_offsets import find_expired_offsets  # noqa: PLC0415 - loads the client

        return find_expired_offsets(self)

    def in_sandbox(self, sandbox: Sandbox) -> Source | None:
        """Use sandbox topics, read from their oldest record; None if topics are not chosen by name."""
        if not self.subscribe:
            return None
        updates = {"subscribe": tuple(map(sandbox.name, self.subscribe)), "starting_offsets": "earliest"}
        return self.model_copy(update={**updates, "starting_timestamp": None, "group_id": None})

    def feed(self, records: Sequence[InputRecord], number: int, columns: Mapping[str, str]) -> None:  # noqa: ARG002 - bytes
        """Send each record to its own topic, or else to the first topic, and wait for acknowledgement."""
        from millstream.connectors.kafka.sandbox_io import send_records  # noqa: PLC0415 - loads the client

        send_records(self, self.subscribe[0], records)

    def reads_topic(self, topic: str) -> bool:
        """Return whether the topic is one of the named topics."""
        return topic in self.topics

    def discard(self) -> None:
        """Delete the source's topics."""
        from millstream.connectors.kafka.sandbox_io import delete_topics  # noqa: PLC0415 - loads the client

        delete_topics(self, self.subscribe)

    def replay(self, *, static: bool) -> ReplayBehaviour:
        """Replay from the offsets in the checkpoint; with `fail_on_data_loss: false`, gaps go unnoticed."""
        if static or self.fail_on_data_loss:
            return super().replay(static=static)
        return ReplayBehaviour(
            Replayability.NONE,
            "continues silently without records that were deleted before they were read",
            "fail_on_data_loss",
        )

    def batch_limit(self) -> BatchLimit | None:
        """Suggest a limit for a start at the oldest record. Spark sets none, not even for `available_now`."""
        limited = self.max_offsets_per_trigger is not None or self.starting_timestamp is not None
        return None if limited or self.starting_offsets != "earliest" else suggest_limit(self.topics)

    def begins(self) -> str:
        """Describe the starting position, including that of partitions added later."""
        if self.starting_timestamp is not None:
            start = f"at the first record from {self.starting_timestamp.isoformat()}"
        elif isinstance(self.starting_offsets, dict):
            start = "at the given offsets"
        else:
            start = f"at the {'oldest' if self.starting_offsets == 'earliest' else 'newest'} records"
        return f"starts {start}; a partition that is added later is read from its oldest record"

    def problems(self) -> list[Problem]:
        """Check for missing or conflicting settings and for options that are not allowed."""
        problems = self.broker_problems() + option_problems(self.options, SOURCE_FIELDS, BESIDE)
        problems += pattern_problems(self.subscribe_pattern)
        selectors = [name for name in ("subscribe", "subscribe_pattern", "assign") if getattr(self, name)]
        if not selectors:
            problems.append(Problem("subscribe", "the kafka source has no topic", "add subscribe: TOPIC"))
        if len(selectors) > 1:
            problems.append(
                Problem(selectors[1], f"kafka has topics from {' and '.join(selectors)}", "keep one of them")
            )
        if self.starting_timestamp is not None and "starting_offsets" in self.model_fields_set:
            problems.append(
                Problem(
                    "starting_timestamp",
                    "starting_offsets and starting_timestamp cannot be used together",
                    "keep only one of them",
                )
            )
        if self.max_trigger_delay is not None and self.min_offsets_per_trigger is None:
            problems.append(
                Problem(
                    "max_trigger_delay",
                    "max_trigger_delay has no effect without min_offsets_per_trigger",
                    "add min_offsets_per_trigger, or remove max_trigger_delay",
                )
            )
        minimum, maximum = self.min_offsets_per_trigger, self.max_offsets_per_trigger
        if minimum is not None and maximum is not None and minimum > maximum:
            problems.append(
                Problem(
                    "min_offsets_per_trigger",
                    f"min_offsets_per_trigger ({minimum}) is greater than max_offsets_per_trigger ({maximum})",
                    "raise max_offsets_per_trigger, or lower min_offsets_per_trigger",
                )
            )
        return problems + self._unread_topic_problems()

    def data_loss_problems(self) -> list[Problem]:
        """Report `fail_on_data_loss: false`."""
        if self.fail_on_data_loss:
            return []
        return [
            Problem(
                "fail_on_data_loss",
                "records that the broker deleted before they were read are skipped silently",
                "remove fail_on_data_loss; the query then stops and reports the missing records",
                "records can be missing because of the topic's retention, a recreated topic or an unclean leader "
                "election, and nothing else reports this",
                instead="true",
            )
        ]

    def surplus(self) -> list[Problem]:
        """Report an isolation level other than `read_committed`."""
        return [
            Problem(
                "options",
                f"'{key}: {value}' reads records of aborted transactions",
                "remove this option; the default is read_committed",
                "a producer that failed sends the records of its aborted transaction again, so they are read twice",
                key,
                "read_committed",
            )
            for key, value in self.options.items()
            if key.lower() == "kafka.isolation.level" and value != "read_committed"
        ]

    def has_batch_limit(self) -> bool:
        """Return whether `max_offsets_per_trigger` or Spark's `maxRecordsPerPartition` is set."""
        return self.max_offsets_per_trigger is not None or "maxRecordsPerPartition" in self.options

    def reads_from(self) -> frozenset[str]:
        """Return the named topics with their brokers."""
        return frozenset(self.place_of(topic) for topic in self.topics)

    def datasets(self) -> tuple[LineageDataset, ...]:
        """Return the named topics."""
        return self.datasets_of(self.topics)

    def needs(self) -> list[RequiredResource]:
        """Return the named topics; a pattern names none."""
        return [
            RequiredResource("kafka", "topic", name, at=",".join(self.bootstrap_servers))
            for name in self.topics
        ]

    def identity(self) -> dict[str, str]:
        """Return the brokers and topics."""
        return {
            "kind": self.kind,
            "bootstrap_servers": ",".join(self.bootstrap_servers),
            "topics": self.subscribe_pattern or ",".join(self.topics),
        }

    def probe(self) -> dict[str, str]:
        """Return topic ids and partition counts, as `topic.<name>` and `partitions.<name>`."""
        from millstream.connectors.kafka.client.admin import describe_topics  # noqa: PLC0415 - checking does not connect

        return describe_topics(self, self.topics, pattern=self.subscribe_pattern, partitions=self.assign)

    def ask(
        self, *, static: bool, checkpoints: Sequence[CheckpointedSource], fresh: Sequence[str]
    ) -> Iterable[ConnectivityFinding]:
        """Check the topics' existence and retention, and whether they are the topics of the checkpoints."""
        from millstream.connectors.kafka.connectivity import check_source  # noqa: PLC0415 - loads the client

        return check_source(self, static=static, checkpoints=checkpoints, fresh=fresh)

    def identity_change(self, recorded: Mapping[str, str], current: Mapping[str, str]) -> str | None:
        """Report a topic whose id differs, because it was deleted and recreated."""
        for key, recorded_id in recorded.items():
            if key.startswith("topic.") and current.get(key, recorded_id) != recorded_id:
                return f"topic '{key.partition('.')[2]}' was deleted and recreated"
        return None

    def gaps(self, start: str) -> list[OffsetGap]:
        """Return the offsets from `start` that the partitions no longer have, and partitions that are gone."""
        from millstream.connectors.kafka.offsets.expired_offsets import find_gaps  # noqa: PLC0415 - loads the client

        return find_gaps(self, json.loads(start) or {})

    def lenient(self) -> KafkaSource:
        """Set `fail_on_data_loss: false`."""
        return self.model_copy(update={"fail_on_data_loss": False})

    def describe(self) -> str:
        """Describe as `kafka clicks`."""
        return f"kafka {self.subscribe_pattern or ', '.join(self.topics)}".strip()

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics chosen by name."""
        return tuple(self.assign) if self.assign else self.subscribe

    def _base_options(self) -> dict[str, str]:
        """Return the options that every read shares."""
        options = {
            **READER,
            **self.client(),
            "failOnDataLoss": str(self.fail_on_data_loss).lower(),
            "includeHeaders": str(self.include_headers).lower(),
        }
        optional = {"minPartitions": self.min_partitions, "kafka.group.id": self.group_id}
        optional["groupIdPrefix"] = self.group_id_prefix
        return options | {key: str(value) for key, value in optional.items() if value is not None}

    def _topic_option(self) -> dict[str, str]:
        """Return the option that selects the topics."""
        if self.assign:
            return {"assign": json.dumps(self.assign)}
        if self.subscribe_pattern:
            return {"subscribePattern": self.subscribe_pattern}
        return {"subscribe": ",".join(self.subscribe)}

    def _start_options(self, *, static: bool) -> dict[str, str]:
        """Return the options for the starting position and the batch size."""
        options: dict[str, str] = {}
        if self.starting_timestamp is not None:
            options["startingTimestamp"] = str(int(self.starting_timestamp.timestamp() * 1000))
            # Otherwise a partition without a record that recent would fail the query at start.
            options["startingOffsetsByTimestampStrategy"] = "latest"
            options |= {key: str(value) for key, value in self.options.items() if key in options}
        elif isinstance(self.starting_offsets, dict):
            options["startingOffsets"] = json.dumps(self.starting_offsets)
        elif not static:
            options["startingOffsets"] = self.starting_offsets
        if not static:
            limits = {
                "maxOffsetsPerTrigger": self.max_offsets_per_trigger,
                "minOffsetsPerTrigger": self.min_offsets_per_trigger,
                "maxTriggerDelay": self.max_trigger_delay and f"{self.max_trigger_delay.micros // 1000}ms",
            }
            options |= {key: str(value) for key, value in limits.items() if value is not None}
        return options

    def _unread_topic_problems(self) -> list[Problem]:
        """Find starting offsets of topics that this source does not read."""
        if not isinstance(self.starting_offsets, dict) or self.subscribe_pattern:
            return []
        return [
            Problem(
                "starting_offsets",
                f"topic '{topic}' is not read by this source",
                f"choose among {', '.join(self.topics)}",
            )
            for topic in self.starting_offsets
            if topic not in self.topics
        ]
