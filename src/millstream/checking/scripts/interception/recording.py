"""Record a script's calls to Spark that a check needs: queries started, tables written, waits."""

from __future__ import annotations

import json
import traceback
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from pyspark.sql.types import StructType

from millstream.checking.scripts.interception import call_sites
from millstream.spec.output_mode import OutputMode
from millstream.spec.trigger import Trigger

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from millstream.checking.scripts.execution.spark_version import SparkVersion
    from millstream.checking.scripts.interception.columns.assumed_columns import AssumedColumns
    from millstream.checking.scripts.interception.monkeypatch import Patches
    from millstream.checking.scripts.interception.placeholders import Unknown
    from millstream.checking.scripts.interception.streaming_query import CheckedQuery
    from millstream.diagnostics.finding import Span


WriterCall = tuple[str, tuple[Any, ...], dict[str, Any]]
"""A method of a writer, and its arguments."""


class ScriptExecution(Protocol):
    """Runs the queries of a script over given rows, in its own folder."""

    def begin(self, patches: Patches) -> None:
        """Forget an earlier run of the script, and replace what a run needs in addition."""

    def read(self, spark: SparkSession, source: str, *, streaming: bool) -> DataFrame | None:
        """Return the rows of a source by its name; None if there are none for it."""

    def read_table(self, spark: SparkSession, place: str, *, streaming: bool) -> DataFrame | None:
        """Return a table that the script has written; None if it has not."""

    def start(self, query: StartedQuery) -> None:
        """Run a query until it has read everything."""

    def write(self, frame: DataFrame, calls: Sequence[WriterCall]) -> None:
        """Write a batch by the calls of Spark's batch writer, of which the last one writes."""

    def skip(self, what: str) -> None:
        """Note something that a run of the script would do, and this one does not."""


@dataclass
class StartedQuery:
    """A streaming query that the script started."""

    number: int
    """Its position among the script's queries, from 1."""
    frame: DataFrame | Unknown
    name: str = ""
    """The query's name, or a generated one."""
    has_name: bool = False
    mode: OutputMode = OutputMode.APPEND
    trigger: Trigger = field(default_factory=Trigger)
    is_interval_known: bool = True
    """False if the interval of the trigger is only a substitute for one that is not known."""
    format: str = ""
    """Spark's name of the sink's format, such as kafka, delta or foreachBatch. Other names are in lower case."""
    target: str = ""
    """The path or table, if there is one."""
    options: dict[str, str] = field(default_factory=dict)
    partitioned: tuple[str, ...] = ()
    function: Callable[..., Any] | None = None
    """The argument of foreachBatch or foreach."""
    checkpoint: str = ""
    """Its folder, or "" if it has none, or a new one at each start."""
    has_new_checkpoint: bool = False
    """True if Spark gives it a new folder at each start: the session has one for checkpoints, the query no name."""
    span: Span | None = None
    """The call that starts it."""
    mode_span: Span | None = None
    trigger_span: Span | None = None
    option_spans: dict[str, Span] = field(default_factory=dict)
    """The call that sets each option."""
    columns: StructType | None = None
    """The columns that the query writes, or None if they are not known."""


@dataclass(frozen=True)
class SourceRead:
    """A source that the script read, with its name in the plan."""

    name: str
    format: str
    options: dict[str, str]
    span: Span | None
    is_streaming: bool
    has_schema: bool = True
    """True if the script gives its columns."""
    option_spans: dict[str, Span] = field(default_factory=dict)
    """The call that sets each option."""


@dataclass(frozen=True)
class WaitCall:
    """A call that waits for a query, given by its number, or for any query."""

    query: int | None
    started: int
    """The number of queries that were started before the call."""
    span: Span | None
    is_bounded: bool = False
    """True if it waits for a limited time or for the available rows."""


@dataclass(frozen=True)
class Doubt:
    """A value that is not known in a check, and the reason in one clause."""

    what: str
    why: str
    span: Span | None
    fix: str = ""
    message: str = ""
    """The message of its finding, if it is a call that a check does not make."""


@dataclass(frozen=True)
class BrokenCell:
    """A cell of a notebook that Python cannot read."""

    message: str
    """What Python says."""
    span: Span | None
    language: str = ""
    """What the cell is instead of Python, if that is known."""


def is_same_table(name: str, other: str) -> bool:
    """Return whether two names can be of one table: one may lack the catalog or the schema."""
    return f".{name}".endswith(f".{other}") or f".{other}".endswith(f".{name}")


@dataclass
class Recording:
    """The record of one run of a script."""

    queries: list[StartedQuery] = field(default_factory=list)
    sources: dict[str, SourceRead] = field(default_factory=dict)
    tables: dict[str, StructType] = field(default_factory=dict)
    """Columns of tables and paths that the script creates or writes, by their name in lower case."""
    providers: dict[str, str] = field(default_factory=dict)
    """Formats of tables that the script creates, by their name in lower case."""
    known_columns: Mapping[str, str] = field(default_factory=dict)
    """Columns that the user gives for tables, paths and topics, by their name in lower case: DDL or Spark's JSON."""
    unknown: dict[str, Unknown] = field(default_factory=dict)
    """Temporary views with unknown columns, by their name in lower case."""
    assumed: AssumedColumns | None = None
    """Columns of unknown sources that the script names; None if they are not to be learned."""
    doubts: list[Doubt] = field(default_factory=list)
    broken_cells: list[BrokenCell] = field(default_factory=list)
    decoded: list[Doubt] = field(default_factory=list)
    """Schemas of messages that are not known. Their columns are those that the script names."""
    listed: Doubt | None = None
    """Columns that are not known, of which the script made a list."""
    waits: list[WaitCall] = field(default_factory=list)
    conf: dict[str, str] = field(default_factory=dict)
    """Session settings that the script changed."""
    conf_spans: dict[str, Span] = field(default_factory=dict)
    """The call that changes each of them, if it is known."""
    handles: list[CheckedQuery] = field(default_factory=list)
    """The query handles that the script received."""
    schemas: dict[str, StructType] = field(default_factory=dict)
    """Columns of each source, by the source's name."""
    execution: ScriptExecution | None = None
    """Runs the queries, in a proof. A check only records them."""
    last_error: Exception | None = None
    """The error that Spark raised last, also if the script caught it."""
    random_texts: set[str] = field(default_factory=set)
    """Texts that another run of the script has others of: UUIDs."""
    spark_version: SparkVersion | None = None
    """The version of Spark for which the script is written, if it is known."""
    project: Path | None = None
    """The root of the script's project, if there is one."""
    temporary_folder: str = ""
    """The folder of the script's temporary files."""
    deletions: list[tuple[str, Span | None]] = field(default_factory=list)
    """Folders that a cell of a notebook deletes with the notebook's own commands, and the call that does."""
    unset_variables: list[str] = field(default_factory=list)
    """Environment variables that the script reads, that have no default, and that are not set here."""
    empty_variables: list[str] = field(default_factory=list)
    """Environment variables that the script takes to be empty because they are not set here."""
    is_notebook: bool = False
    """True if the script is a notebook, which may have methods that only Databricks has."""
    has_refused_connection: bool = False
    """True if the script tried to connect to a server."""
    has_servers: bool = False
    """True if the script's own connections seem to succeed, because it ended when they did not."""
    has_emptied_sources: bool = False
    """True if the script read a source, or the progress of a query, that is empty only in the check."""
    has_taken_rows: bool = False
    """True if the script then took rows: without any, it may not start its query."""

    def doubt(self, doubt: Doubt) -> Doubt:
        """Record a value that is not known, without duplicates."""
        if doubt not in self.doubts:
            self.doubts.append(doubt)
        return doubt

    @property
    def spark_error(self) -> Exception | None:
        """The error that Spark raised last, if it came to the script's own code."""
        trace = traceback.walk_tb(self.last_error.__traceback__ if self.last_error else None)
        came = any(call_sites.is_user_file(frame.f_code.co_filename) for frame, _ in trace)
        return self.last_error if came else None

    def list_known_tables(self) -> list[str]:
        """List the tables and views that the script creates or whose columns the user gives."""
        return [*self.tables, *self.known_columns, *self.unknown]

    def columns_of(self, name: str) -> Any:
        """Return the columns that the script or the user gives for a table, path or topic; None if neither does."""
        key = name.replace("`", "").rstrip("/").lower()
        schema = self.tables.get(key)
        if schema is None and key not in self.known_columns:
            # The same table, with or without its catalog and schema.
            same = {name for name in self.tables if is_same_table(name, key)}
            schema = self.tables[same.pop()] if len(same) == 1 and "/" not in key else None
        if schema is None and key in self.known_columns:
            text = self.known_columns[key]
            return StructType.fromJson(json.loads(text)) if text.startswith("{") else text
        return schema

    def name_source(self, base_name: str, format: str, options: dict[str, str]) -> str:
        """Return a unique name for a source: that of an earlier read if the same source is read again."""
        name, number = base_name, 1
        while (known := self.sources.get(name)) and (known.format, known.options) != (format, options):
            number += 1
            name = f"{base_name} {number}"
        return name
