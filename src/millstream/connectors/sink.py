"""What a sink kind is: settings, facts that the analyser reads, and the writer that delivers batches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from millstream.connectors.failpoints import POINTS
from millstream.connectors.remembered import Note, nothing
from millstream.diagnostics.failure import Unfit
from millstream.spec.base import Spec
from millstream.spec.mode import OutputMode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter
    from pyspark.sql.types import StructType

    from millstream.connectors.asking import Remark
    from millstream.connectors.cut import Cut
    from millstream.connectors.dataset import Dataset
    from millstream.connectors.elsewhere import Place
    from millstream.connectors.remembered import Entry
    from millstream.connectors.source import Need, Problem
    from millstream.spec.guarantee import Guarantee


@dataclass(frozen=True)
class SinkIdentity:
    """Which sink of which query a writer serves.

    `query_id` is the UUID in the checkpoint's `metadata` file: a fresh checkpoint is a different writer.
    `sink` is stable within the query (`postgres:purchases`) and tells two sinks of one query apart.
    """

    pipeline: str
    query: str
    query_id: str
    sink: str
    mode: OutputMode

    @property
    def key(self) -> str:
        """The name under which the sink remembers the batches it has: query id and sink."""
        return f"{self.query_id}/{self.sink}"


@dataclass(frozen=True)
class Written:
    """What a write did. `skipped` when the sink already held the batch; `rows` is None when not counted.

    `later` when the batch was set aside, to be delivered when the sink is back.
    """

    rows: int | None = None
    skipped: bool = False
    later: bool = False


def contested(identity: SinkIdentity, batch_id: int) -> Unfit:
    """Why a batch cannot be delivered whose number another run has given to other records."""
    return Unfit(
        f"sink '{identity.sink}' holds a batch {batch_id} of query '{identity.query}' with other records: another "
        "run writes to it from a copy of this checkpoint",
        "stop one of the two; the one that goes on alone may need 'millstream run --adopt'",
    )


class Writer(ABC):
    """Delivers the batches of one query to one sink. Lives in the driver; used by one thread at a time."""

    passes: int = 1
    """How often `write` runs its frame. More than one run of all a query's sinks and the batch is cached first."""
    runs: bool = True
    """Does `write` always run its frame? A function of the user's passes over a batch that it knows."""

    sums: bool = False
    """Does it remember what a batch's rows add up to?"""

    def __init__(self, identity: SinkIdentity) -> None:
        self.identity = identity
        self.note: Callable[[int], Note] = nothing
        """What to remember of a batch, by its number. Its content is known once the batch's rows have passed."""

    def remembered(self, spark: SparkSession) -> tuple[Entry, ...]:
        """The newest batch of each writer of this query that the sink holds in this target, this one's too.

        Asked before `open`, so that nothing is claimed by a start that is refused. None where the kind keeps no
        account, or the target is empty. Raises `NotReady` when the sink is out of reach.
        """
        return ()

    def answer(self, spark: SparkSession, judge: Callable[[Sequence[Entry]], None]) -> None:
        """Have somebody judge what is remembered, before `open`. A sink that may be away is asked when it is back."""
        judge(self.remembered(spark))

    def entry(self, batch_id: int) -> Entry | None:
        """What the sink remembers of that batch of this writer, once it is open; None where it does not tell."""
        return None

    def open(self, spark: SparkSession, schema: StructType) -> None:
        """Get ready: make the table, fence older writers. Called once a start, before the first batch.

        Raises `NotReady` when the sink is out of reach or refuses `schema` (the columns that will come).
        """

    def holds(self, batch_id: int) -> bool:
        """Has this sink committed that batch already? False where it cannot know."""
        return False

    @abstractmethod
    def write(self, frame: DataFrame, batch_id: int) -> Written:
        """Write one batch. Writing the same batch id again must change nothing, where the kind promises so."""

    def flow(self, rows: DataFrame) -> DataStreamWriter:
        """Spark's own writer of a stream whose rows come one by one, with neither mode nor trigger set.

        Asked only of kinds that say `flows`, after `open`, in place of `write`. Each row is written at least once.
        """
        # Not abstract: most kinds have batches alone.
        raise NotImplementedError

    def trial(self, frame: DataFrame) -> None:
        """Offer rows to the sink and take them back, to find out which it refuses. Raises as `write` does.

        Asked only after `write` has failed, and before `close`; a sink that cannot take rows back does nothing.
        """

    def close(self) -> None:
        """Let go of connections. Called once, also after a failure."""


class Sink(Spec):
    """Base of every sink kind. A kind is a subclass in `connectors/<system>/sink.py`."""

    kind: ClassVar[str]
    """The key that names this kind in a spec."""
    main: ClassVar[str]
    """The field that a bare string stands for."""
    modes: ClassVar[frozenset[OutputMode]]
    """Output modes this kind takes, whatever its settings."""
    refuses_text: ClassVar[str | None] = None
    """Which texts end a batch: a few words, such as `a NUL character`; None where any text is taken."""
    keeps: ClassVar[bool] = True
    """Are rows still there when the run has ended?"""
    case_counts: ClassVar[bool] = True
    """Must settings name columns in the case in which they come?"""
    sifts: ClassVar[bool] = False
    """Can it take rows back, so that those that it refuses can be told from the rest of a batch?"""
    in_tasks: ClassVar[bool] = False
    """Do Spark's tasks send rows outside by themselves, so that a task that runs twice sends them twice?"""

    flows: ClassVar[frozenset[str]] = frozenset()
    """The triggers without batches under which Spark itself writes it, row by row. Then its writer has `flow`."""

    server: ClassVar[str] = ""
    """The server of the local stack that it needs; empty where it needs none."""

    def functions(self) -> Mapping[str, str]:
        """References to the user's functions, `module:name` from the spec's folder, by the field that holds them."""
        return {}

    def bound(self, found: Mapping[str, Callable[..., Any]]) -> Sink:
        """The same sink with its functions, by field; asked before `writer` of kinds that have `functions`."""
        return self

    @abstractmethod
    def writer(self, identity: SinkIdentity) -> Writer:
        """The object that delivers. Its module is imported here and not at the top: it may be heavy."""

    @abstractmethod
    def guarantee(self, mode: OutputMode) -> tuple[Guarantee, str]:
        """The strongest guarantee this sink keeps in a mode, given a replayable source, and why."""

    def stronger(self) -> Sink:
        """The same sink, keeping the strongest guarantee it can at whatever cost; itself where that is no other."""
        return self

    def problems(self, mode: OutputMode) -> list[Problem]:
        """What is wrong with these settings in this mode, as far as can be told without connecting."""
        return []

    def unflowing(self) -> list[Problem]:
        """Settings that need batches, and so do not go with rows one by one."""
        return []

    def writes_to(self) -> frozenset[str]:
        """What it writes, in the words of `Source.reads_from`."""
        return frozenset()

    def datasets(self) -> tuple[Dataset, ...]:
        """What it writes, as lineage names it; nothing where that has no name."""
        return ()

    def cautions(self, mode: OutputMode) -> list[Problem]:
        """Settings that work and take something away: an acknowledgement, the memory of what was written."""
        return []

    def takes(self, names: Sequence[str]) -> tuple[str, ...]:
        """Those of a query's columns that are written."""
        return tuple(names)

    def named(self) -> Mapping[str, tuple[str, ...]]:
        """The columns of the query that settings name, by the field that names them."""
        return {}

    def refuses(self, columns: Mapping[str, str]) -> list[Problem]:
        """What is wrong with the columns that come, by name with their types in Spark's DDL (`array<string>`)."""
        return []

    @classmethod
    def of_spark(
        cls,
        columns: Mapping[str, str],  # noqa: ARG003 - for those that refuse something
        options: Mapping[str, str],  # noqa: ARG003
        divided: tuple[str, ...],  # noqa: ARG003
    ) -> list[Problem]:
        """What Spark's own sink of this format refuses of a script's columns and options, while it runs.

        `divided` are the columns of `partitionBy`.
        """
        return []

    def needs(self) -> list[Need]:
        """What must exist outside: topics."""
        return []

    def identity(self) -> dict[str, str]:
        """What it writes to, for the checkpoint's record and without secrets. Does not connect."""
        return {"kind": self.kind, "target": self.target()}

    def probe(self) -> None:
        """Ask the world whether it can be written. Raises `NotReady` in one sentence."""

    def ask(self, columns: Mapping[str, str] | None, mode: OutputMode) -> Iterable[Remark]:
        """What is not as it should be, found by asking the world: a probe, unless a kind can tell more.

        `columns` are those that the query gives, with their types in Spark's DDL; None when they are not known.
        Raises `Silent` when nobody answers, `NotReady` when the sink cannot be written.
        """
        self.probe()
        return ()

    @abstractmethod
    def target(self) -> str:
        """Where it writes, in a word and without secrets: a path, a table, a topic."""

    def rows(self, limit: int) -> tuple[list[str], list[list[object]]] | None:
        """The latest rows without Spark, for `show`: column names and rows; None where a kind cannot."""
        return None

    def elsewhere(self, place: Place) -> Sink | None:
        """The same sink, writing below a place of its own; None where a kind cannot."""
        return None

    def moments(self) -> tuple[str, ...]:
        """The failpoints that its writer passes with every batch."""
        system = type(self).__module__.split(".")[-2]
        return tuple(point for point in POINTS if point.startswith(f"{system}."))

    def whole(self, spark: SparkSession, schema: StructType, mode: OutputMode) -> DataFrame | None:
        """All that a reader finds in it, with the names and types of `schema`; None where that cannot be told.

        Where a later version of a row replaces an earlier one for its readers, the last ones.
        """
        return None

    def outcome(self, rows: DataFrame) -> DataFrame | None:
        """What it holds, in columns of its own, once all these rows of its query are written.

        None where that is the rows themselves, or the last of each key, in the columns that it takes.
        """
        return None

    def held(self, spark: SparkSession, schema: StructType, mode: OutputMode, cut: Cut) -> DataFrame | None:
        """As `whole`, of a table of any size: at least the rows of a cut."""
        return self.whole(spark, schema, mode)

    def into(self, name: str) -> Sink | None:
        """The same sink, writing to another table, folder or topic; None where a kind cannot."""
        return None

    def apart(self, mode: OutputMode) -> str:
        """Why no rows may be added beside those of its query, as a clause; empty where they may."""
        return ""

    def replacing(self, cut: Cut) -> Sink | None:
        """The same sink, whose writer puts a batch in the place of a cut's rows at once; None where it cannot."""
        return None

    def versions(self, spark: SparkSession, schema: StructType) -> DataFrame | None:
        """For update mode without a key: every version of a row, and a column `batch` by which they are told apart.

        Columns are those of `schema` and `batch`; None where a kind keeps no versions.
        """
        return None

    @property
    def reorders(self) -> bool:
        """Does a column of the rows, and not the order of the batches, say which of a key is the last?"""
        return False

    @property
    def sole(self) -> bool:
        """Must one query alone write there? Otherwise each keeps its own account of its batches."""
        return False

    @property
    def marks(self) -> tuple[str, str] | None:
        """The setting that tells which rows delete, and its condition in Spark's SQL, true or false for each row."""
        return None

    @property
    def removes(self) -> str | None:
        """A condition in Spark's SQL: a row for which it holds removes the row of its key. None where no row does."""
        return None

    def prepare(self) -> None:
        """Make what must be there before its first batch. Asked only of a sink that was moved `elsewhere`."""

    def discard(self) -> None:
        """Remove what it has written. Asked only of a sink that was moved `elsewhere`."""

    def replaces(self, mode: OutputMode) -> bool:
        """Does a row replace the one with the same `row_key`?"""
        return bool(self.row_key) and mode is not OutputMode.COMPLETE

    def converges(self, mode: OutputMode) -> bool:
        """Does it come to the same rows when another checkpoint reads everything once more?"""
        return mode is OutputMode.COMPLETE or self.replaces(mode)

    def kept_apart(self, mode: OutputMode) -> str:
        """Why no other checkpoint can take over what is there; empty where one can."""
        return ""

    def clearing(self) -> str:
        """What empties it, as a person would type or say it: `rm -r lake/funnel`."""
        return f"empty {self.target()}"

    @property
    def row_key(self) -> tuple[str, ...]:
        """The columns whose values make a row the same row; none where every row stands for itself."""
        return ()

    @property
    def routed_by(self) -> tuple[str, ...]:
        """The columns that decide where a row goes: a folder, a topic, a partition."""
        return ()

    def describe(self) -> str:
        """A few words for a graph: `postgres purchases`."""
        return f"{self.kind} {self.target()}"
