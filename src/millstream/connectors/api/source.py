"""Base class of sources: settings, facts for the analyser, and how Spark reads it."""

from __future__ import annotations

import json
from abc import abstractmethod
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar

from millstream.spec.base import Spec

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from pyspark.sql import DataFrame, SparkSession

    from millstream.connectors.api.connectivity import CheckpointedSource, ConnectivityFinding
    from millstream.connectors.api.dead_letters import DeadLetter
    from millstream.connectors.api.lineage_dataset import LineageDataset
    from millstream.connectors.api.sandbox import InputRecord, Sandbox


@dataclass(frozen=True)
class RequiredResource:
    """A resource that must exist outside before a pipeline starts, so that `up` can create it.

    `system` is the connector's folder name, `what` a term of that system ("topic"), and `at` the server's address in
    the spec, empty if there is none.
    """

    system: str
    what: str
    name: str
    settings: Mapping[str, str] = field(default_factory=dict)
    at: str = ""


@dataclass(frozen=True)
class RecentMessage:
    """A message with its position, time and bytes; None for null."""

    topic: str
    partition: int
    offset: int
    timestamp: datetime
    key: bytes | None
    value: bytes | None


@dataclass(frozen=True)
class Problem:
    """A problem with a setting, found without connecting: the field, the message, the reason and the fix.

    A nested field is written with a dot, `cdc.keys`. `key` is the key inside a field with options. `instead` is the
    value that fixes the problem, as written in a spec.
    """

    field: str | None
    message: str
    fix: str = ""
    why: str = ""
    key: str | None = None
    instead: str | None = None


@dataclass(frozen=True)
class BatchLimit:
    """Suggested setting to limit the size of a batch: its field and a first value.

    `first_batch` describes the first batch without it: `all records of topic 'orders'`. `causes` are the fields that
    determine the first batch, if they are set.
    """

    field: str
    value: int
    first_batch: str
    causes: tuple[str, ...] = ()


@dataclass(frozen=True)
class OffsetGap:
    """Records that a checkpoint has not read yet but the source no longer has: `start` to before `end`."""

    topic: str
    partition: int
    start: int
    end: int

    def __str__(self) -> str:
        count = self.end - self.start
        return (
            f"partition {self.partition} of topic '{self.topic}' has no offsets {self.start} to "
            f"{self.end - 1} any more: {count:,} record{'' if count == 1 else 's'}"
        )

    def passed(self, offsets: str | None) -> bool:
        """Return whether a query with these newest offsets, in Spark's JSON, has passed the gap."""
        newest = json.loads(offsets or "null") or {}
        return int(newest.get(self.topic, {}).get(str(self.partition), self.end)) >= self.end


@dataclass(frozen=True)
class OffsetRange:
    """Offsets that one batch read from one source, in Spark's offset JSON: from `start` to before `end`.

    `start` is None if the checkpoint does not have the start of the first batch. `files` are the paths that the batch
    read, for file sources.
    """

    start: str | None
    end: str
    files: tuple[str, ...] = ()


class Replayability(StrEnum):
    """Whether a batch can be read again, from the safest to the worst."""

    EXACT = "exact"
    """The same rows are read, or the query stops."""
    CONDITIONAL = "conditional"
    """The same rows are read under a condition that is not monitored."""
    NONE = "none"
    """Rows may be missing without an error."""


@dataclass(frozen=True)
class ReplayBehaviour:
    """What happens to a source's rows when their batch is replayed.

    `text` continues the source's name: `can be read again from …`. For a condition it states the requirement: `no
    file of it may be changed in place`. `field` is the setting that decides, if there is one.
    """

    how: Replayability
    text: str
    field: str | None = None


class Source(Spec):
    """Base of every source kind. A kind is a subclass in `connectors/<system>/source.py`."""

    kind: ClassVar[str]
    """Key of this kind in a spec."""
    main: ClassVar[str]
    """Field that is set when the value in the spec is a plain string."""
    streams: ClassVar[bool] = True
    """Whether the source can be read as a stream."""
    static: ClassVar[bool] = False
    """Whether the source can be read once, as a static table."""
    replayable: ClassVar[bool] = False
    """Whether reading the same offsets again gives the same rows."""
    payload: ClassVar[bool] = False
    """Whether rows have undecoded bytes in a column `value`, which the spec's `format` and `schema` decode."""
    columns: ClassVar[str | None] = None
    """DDL of the columns of `read`, if independent of the settings; None if the spec's `schema` defines them."""
    place: ClassVar[tuple[str, ...]] = ()
    """Columns with a record's position, for dead letters: topic, partition, offset."""
    is_generated: ClassVar[bool] = False
    """Whether the rows are generated for trying out a pipeline, so that nothing can be lost."""
    reread: ClassVar[bool] = False
    """Whether each batch reads the current version of a static table, instead of the version at the start."""

    flows: ClassVar[frozenset[str]] = frozenset()
    """Triggers without batches with which Spark reads it: `continuous`, `real_time`."""
    bounds: ClassVar[tuple[str, ...]] = ()
    """Fields that concern batches: their size and their number of tasks."""

    server: ClassVar[str] = ""
    """Server of the local stack that the kind needs; empty if none."""
    is_feedable: ClassVar[bool] = False
    """Whether `feed` can add records."""

    @abstractmethod
    def read(self, spark: SparkSession, *, static: bool, schema: str | None) -> DataFrame:
        """Open the source: a stream unless `static`. `schema` is DDL, for kinds that need one."""

    def read_range(self, spark: SparkSession, offsets: OffsetRange, schema: str | None) -> DataFrame | None:
        """Read the rows of one batch again, as a static DataFrame; None if a kind cannot."""
        return None

    def describe_offsets(self, offsets: OffsetRange) -> list[str]:
        """Describe what a batch reads, one clause per part; nothing if it reads nothing new."""
        if offsets.files:
            count = len(offsets.files)
            return (
                [f"file {offsets.files[0]}"]
                if count == 1
                else [f"{count} files, {offsets.files[0]} to {offsets.files[-1]}"]
            )
        return (
            [] if offsets.start == offsets.end else [f"{self.describe()}, {offsets.start} to {offsets.end}"]
        )

    def halves(self, offsets: OffsetRange) -> tuple[OffsetRange, OffsetRange] | None:
        """Split what `read_range` reads into two parts; None for a single record or file."""
        if len(offsets.files) < 2:
            return None
        middle = len(offsets.files) // 2
        first, second = offsets.files[:middle], offsets.files[middle:]
        return replace(offsets, files=first), replace(offsets, files=second)

    def newest(self, records: int) -> Source:
        """Return the source reading about this many of its newest records in a static read.

        Returns the source itself if a kind does not know which are the newest.
        """
        return self

    def recent(self, limit: int) -> list[RecentMessage] | None:
        """Return the last messages, newest first; None if a kind has no messages. Connects."""
        return None

    def oldest(self) -> Source:
        """Return the source for a static read from its oldest record, wherever a stream starts."""
        return self

    def forgotten(self) -> list[OffsetGap]:
        """Return records that the source had before its oldest one, as far as known. Connects."""
        return []

    def in_sandbox(self, sandbox: Sandbox) -> Source | None:
        """Return the source reading everything from a sandbox; None if a kind cannot."""
        return None

    def feed(self, records: Sequence[InputRecord], number: int, columns: Mapping[str, str]) -> None:
        """Add records, as portion `number`. Called only for a source in a sandbox.

        `columns` are those of the spec's schema, with types in Spark's DDL.
        """

    def reads_topic(self, topic: str) -> bool:
        """Return whether the source reads the topic."""
        return False

    def discard(self) -> None:
        """Delete the records that were added. Called only for a source in a sandbox."""

    def resend(self, topic: str, dead_letters: Sequence[DeadLetter]) -> bool:
        """Send dead letters of this source to a topic of its server; return False if a kind has none.

        Raises `NotReady` if one did not arrive; others may have arrived.
        """
        return False

    def replay(self, *, static: bool) -> ReplayBehaviour:
        """Describe what happens to the source's rows when a batch is replayed."""
        if static:
            return ReplayBehaviour(
                Replayability.CONDITIONAL, "it must not change between a batch and its replay"
            )
        if self.replayable:
            return ReplayBehaviour(
                Replayability.EXACT, "can be read again from the offsets in the checkpoint"
            )
        return ReplayBehaviour(Replayability.NONE, "cannot replay a lost batch")

    def problems(self) -> list[Problem]:
        """Check the settings, as far as possible without connecting."""
        return []

    def record_mode_problems(self) -> list[Problem]:
        """Return settings that concern batches, and have no effect with triggers without batches."""
        set_fields = (name for name in self.bounds if getattr(self, name) is not None)
        return [
            Problem(name, f"{name} concerns batches, and this trigger has none", "remove it")
            for name in set_fields
        ]

    def begins(self) -> str:
        """Describe where a query without a checkpoint starts, as a clause after the source's name; may be empty."""
        return ""

    def omission_problems(self) -> list[Problem]:
        """Return settings that omit records on purpose, without reporting each."""
        return []

    def data_loss_problems(self) -> list[Problem]:
        """Return settings with which records are skipped silently."""
        return []

    def surplus(self) -> list[Problem]:
        """Return settings with which unintended records are read, such as those of aborted transactions."""
        return []

    def limited(self) -> bool:
        """Return whether the size of a batch is limited."""
        return False

    def batch_limit(self) -> BatchLimit | None:
        """Return a limit for the first batch; None if there is one, or if the query starts at the end."""
        return None

    def newest_first(self) -> bool:
        """Return whether an earlier batch may contain later records."""
        return False

    def removes_read_files(self) -> bool:
        """Return whether records are removed once a query has read them, so that another query may miss them."""
        return False

    def reads_from(self) -> frozenset[str]:
        """Return what is read, in the format of `Sink.writes_to`: topics with their brokers, folders, tables."""
        return frozenset()

    def datasets(self) -> tuple[LineageDataset, ...]:
        """Return the lineage names of what is read; nothing if it has none."""
        return ()

    def needs(self) -> list[RequiredResource]:
        """Return the resources that must exist outside, such as topics and tables."""
        return []

    def identity(self) -> dict[str, str]:
        """Return what is read without secrets, for the checkpoint's record. Does not connect."""
        return {"kind": self.kind}

    def probe(self) -> dict[str, str]:
        """Connect, check that the source can be read, and return its ids. Raises `NotReady` in one sentence."""
        return {}

    def identity_change(self, recorded: Mapping[str, str], current: Mapping[str, str]) -> str | None:
        """Return in one sentence how the source was replaced since the checkpoint was created, or None.

        `recorded` is the identity at the query's last start, `current` the result of `probe`.
        """
        return None

    def gaps(self, start: str) -> list[OffsetGap]:
        """Return the records from `start` on, in Spark's JSON, that no longer exist. Connects.

        Returns nothing if a kind does not know. Raises `Unfit` if the offsets do not exist yet, `NotReady` if the
        system does not respond.
        """
        return []

    def lenient(self) -> Source:
        """Return the source that continues after missing records; itself if it never stops for them."""
        return self

    def ask(
        self, *, static: bool, checkpoints: Sequence[CheckpointedSource], fresh: Sequence[str]
    ) -> Iterable[ConnectivityFinding]:
        """Check the external system: a probe, unless a kind checks more.

        `checkpoints` is the checkpoint data of the queries that read the source; `fresh` are the queries without a
        checkpoint. Raises `Silent` if the system does not respond, `NotReady` if what the source reads does not
        exist.
        """
        self.probe()
        return ()

    def describe(self) -> str:
        """Return a short label for a graph: `kafka clicks`."""
        return f"{self.kind} {getattr(self, self.main, '')}".strip()
