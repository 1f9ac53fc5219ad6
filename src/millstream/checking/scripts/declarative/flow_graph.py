"""The datasets and flows of a declarative pipeline. Flows are registered as in Spark and built when read."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from pyspark.pipelines.graph_element_registry import GraphElementRegistry
from pyspark.pipelines.output import MaterializedView, Sink, StreamingTable, TemporaryView
from pyspark.sql import DataFrame, SparkSession, functions
from pyspark.sql.streaming.query import StreamingQuery

from millstream.checking.scripts.declarative.databricks_sql import as_schema_of_spark
from millstream.checking.scripts.declarative.expectations import (
    apply_expectations,
    keep_expected,
    list_expectations,
)
from millstream.checking.scripts.interception import call_sites
from millstream.checking.scripts.interception.absent import Absent, has_mark
from millstream.checking.scripts.interception.placeholders import Unknown
from millstream.checking.scripts.interception.recording import Doubt, is_same_table
from millstream.checking.scripts.interception.sandbox import WaitReached
from millstream.checking.scripts.runner import LONG_PATIENCE, PATIENCE
from millstream.checking.scripts.script_process import time_limit
from millstream.diagnostics.spec_codes import build_finding

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from pyspark.pipelines.flow import AutoCdcFlow, Flow
    from pyspark.pipelines.output import Output

    from millstream.checking.scripts.declarative.expectations import DeclaredExpectation
    from millstream.checking.scripts.declarative.project_spec import Project
    from millstream.checking.scripts.interception.readers import ReaderPatch
    from millstream.diagnostics.finding import Finding, Span
    from millstream.diagnostics.judged_query import JudgedQuery


_NO_SETTINGS: dict[str, Any] = {}


class DatasetKind(StrEnum):
    """The kind of a dataset."""

    STREAMING_TABLE = "streaming table"
    MATERIALIZED_VIEW = "materialized view"
    TEMPORARY_VIEW = "temporary view"
    SINK = "sink"
    TABLE = "table"
    """A table of `dlt`, which is a streaming table if its query reads a stream."""


@dataclass
class DeclaredDataset:
    """A dataset that flows write."""

    name: str
    kind: DatasetKind
    span: Span | None
    schema: Any = None
    format: str = ""
    options: dict[str, str] = field(default_factory=dict)
    is_unreadable: bool = False
    """True if Spark cannot parse its statement, of which only the name is known."""
    expectations: list[DeclaredExpectation] = field(default_factory=list)
    """Those of its own statement; the functions of its flows may have others."""


@dataclass
class DeclaredFlow:
    """A flow: a query, and the dataset it writes."""

    name: str
    target: str
    make: Callable[[], Any]
    span: Span | None
    text: str | None = None
    """Its SQL statement, or None for a flow in Python."""
    changes: Mapping[str, Any] = field(default_factory=dict)
    """The settings of an AUTO CDC flow."""
    needs_stream: bool = False
    """True for an append flow of `dlt`, unless it runs only once."""
    frame: DataFrame | Unknown | None = None
    error: BaseException | None = None
    """What its function raised, which may be the end of the process."""
    is_only_here: bool = False
    """True if the error has its cause in the check."""


class FlowGraph(GraphElementRegistry):
    """Collects the datasets and flows that a project's files register, and builds the frames of the flows."""

    def __init__(self, project: Project, reading: ReaderPatch) -> None:
        self.project = project
        self.reading = reading
        self.datasets: dict[str, DeclaredDataset] = {}
        self.flows: list[DeclaredFlow] = []
        self.findings: list[Finding] = []
        self.unparsed: list[JudgedQuery] = []
        """The flows of statements that Spark cannot parse."""
        self.sql: Callable[[str, Path], None] = lambda _text, _file: None
        self.read_written: Callable[[str, bool], Any] | None = None
        """Returns a table of the pipeline with its rows, in a proof, given its key and whether it is a stream."""
        self.is_for_databricks = project.is_for_databricks
        """True if the project uses what only Databricks has, where a table may be filled by a batch query."""
        self._in_progress: list[str] = []
        self._limit: contextlib.ExitStack | None = None
        """The time limit of the flow whose function runs."""

    def for_databricks(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that only Databricks has, which tells for whom the project is written."""

        def call(*args: Any, **kwargs: Any) -> Any:
            self.is_for_databricks = True
            return function(*args, **kwargs)

        return call

    def register_output(self, output: Output) -> None:
        """Add a dataset that Python declares."""
        span = _span(output)
        match output:
            case StreamingTable():
                dataset = DeclaredDataset(
                    output.name, DatasetKind.STREAMING_TABLE, span, output.schema, output.format or ""
                )
            case MaterializedView():
                dataset = DeclaredDataset(
                    output.name, DatasetKind.MATERIALIZED_VIEW, span, output.schema, output.format or ""
                )
            case TemporaryView():
                dataset = DeclaredDataset(output.name, DatasetKind.TEMPORARY_VIEW, span)
            case Sink():
                dataset = DeclaredDataset(
                    output.name, DatasetKind.SINK, span, None, output.format, dict(output.options)
                )
            case _:
                return
        self.declare(dataset)

    def register_flow(self, flow: Flow) -> None:
        """Add a flow whose query is a Python function."""
        self.flows.append(DeclaredFlow(flow.name, flow.target, flow.func, _span(flow)))

    def register_auto_cdc_flow(self, flow: AutoCdcFlow) -> None:
        """Add an AUTO CDC flow, which cannot be checked."""
        self.changes(flow.target, _span(flow), vars(flow))

    def register_sql(self, sql_text: str, file_path: Path) -> None:
        """Add the datasets and flows of an SQL file."""
        self.sql(sql_text, file_path)

    def changes(self, target: str, span: Span | None, settings: Mapping[str, Any] = _NO_SETTINGS) -> None:
        """Add an AUTO CDC flow into a table. Spark creates its query."""
        doubt = Doubt(
            f"the AUTO CDC flow into '{target}'",
            "Spark creates the query of this flow only when the pipeline runs",
            span,
        )
        if settings.get("sequence_by") is None:
            self.reading.recording.doubt(doubt)
        unknown = Unknown(doubt, self.reading.recording, streaming=True)

        def make() -> Any:
            return unknown if settings.get("sequence_by") is None else self._apply(settings)

        self.flows.append(DeclaredFlow(target, target, make, span, changes=settings))

    def _apply(self, settings: Mapping[str, Any]) -> Any:
        """Return what an AUTO CDC flow writes: the chosen columns of its source, with an interval for history."""
        session = SparkSession.active()
        source = session.readStream.table(settings["source"])
        if isinstance(source, Absent):
            return source
        order, deleted = settings["sequence_by"], settings.get("apply_as_deletes")
        order = functions.col(order) if isinstance(order, str) else order
        # Spark refuses a flow whose keys, order or condition name a column that the source does not have.
        source.select(*settings["keys"], order)
        if deleted is not None:
            source.where(deleted)
        columns, other_columns = settings.get("column_list"), settings.get("except_column_list")
        frame = source.select(*columns) if columns else source.drop(*other_columns or ())
        if str(settings.get("stored_as_scd_type")) != "2":
            return frame
        kind = "timestamp" if isinstance(source, Unknown) else source.select(order).schema[0].dataType
        interval = {name: functions.lit(None).cast(kind) for name in ("__START_AT", "__END_AT")}
        return frame.withColumns(interval)

    def declare(self, dataset: DeclaredDataset) -> None:
        """Add a dataset. Add a finding for a second one with the same name, which Spark refuses."""
        key = self.key(dataset.name)
        if isinstance(dataset.schema, str):
            dataset.schema = as_schema_of_spark(dataset.schema)
        if key in self.datasets:
            existing = self.datasets[key]
            if not self.project.has_spec and _file(existing) != _file(dataset):
                return
            line = f" (line {existing.span.line} of {existing.span.file})" if existing.span else ""
            self.findings.append(
                build_finding(
                    "MS118",
                    f"{dataset.kind} '{dataset.name}' has the same name as a {existing.kind}{line}",
                    dataset.span,
                    why="Spark refuses two datasets with the same name",
                    fix="rename one of them",
                )
            )
            return
        self.datasets[key] = dataset

    def expect(self, name: str, expectations: Iterable[DeclaredExpectation]) -> None:
        """Add expectations to a dataset."""
        if (dataset := self.datasets.get(self.key(name))) is not None:
            dataset.expectations += expectations

    def written_rows(self, flow: DeclaredFlow, dataset: DeclaredDataset) -> DataFrame | Unknown:
        """Return the frame of a flow without the rows that expectations keep from its dataset."""
        assert flow.frame is not None
        expectations = (*list_expectations(flow.make), *dataset.expectations)
        if self.read_written is not None and isinstance(flow.frame, DataFrame):
            return apply_expectations(flow.frame, expectations)
        return keep_expected(flow.frame, expectations)

    def list_written(self) -> Iterator[DataFrame | Unknown]:
        """Yield the frame of each flow that could be built, without the rows that expectations refuse."""
        for flow in self.flows:
            dataset = self.datasets.get(self.target_key(flow))
            if flow.frame is not None and dataset is not None:
                yield self.written_rows(flow, dataset)

    def key(self, name: str) -> str:
        """Return a dataset's name in lower case, without the pipeline's default catalog and database.

        Those that a project reads from settings are not known in a check, and are taken for the defaults.
        """
        parts = [part.strip("`").lower() for part in name.split(".")]
        while len(parts) > 1 and has_mark(parts[0]):
            parts = parts[1:]
        if parts[0] == "live" and len(parts) > 1:
            # The name of the pipeline's own schema in `dlt`.
            parts = parts[1:]
        defaults = [self.project.catalog.lower(), self.project.database.lower()]
        if len(parts) == 3 and parts[0] == defaults[0]:
            parts = parts[1:]
        if len(parts) == 2 and parts[0] == defaults[1]:
            parts = parts[1:]
        return ".".join(parts)

    def target_key(self, flow: DeclaredFlow) -> str:
        """Return the key of the dataset that a flow writes.

        Without a spec of Spark, the pipeline's catalog and database are not known, so a name without them is that
        of the one dataset whose last part it is.
        """
        key = self.key(flow.target)
        if key in self.datasets or self.project.has_spec:
            return key
        same = [other for other in self.datasets if is_same_table(key, other)]
        return same[0] if len(same) == 1 else key

    def read(self, session: Any, name: str, *, streaming: bool) -> Any:
        """Return a dataset of the pipeline as a frame, or None if the pipeline has no dataset with this name."""
        dataset = self.datasets.get(self.key(name))
        if dataset is None or dataset.kind is DatasetKind.SINK:
            return None
        if self.read_written is not None and dataset.kind is not DatasetKind.TEMPORARY_VIEW:
            written = self.read_written(self.key(name), streaming)
            if written is not None:
                return written
        flows = [flow for flow in self.flows if self.target_key(flow) == self.key(name)]
        if dataset.is_unreadable and not flows:
            return None
        if has_mark(name) and any(flow.name in self._in_progress for flow in flows):
            # Two schemas that are not known may be different ones.
            return None
        for flow in flows:
            self.make(flow)
        built = next((flow for flow in flows if flow.frame is not None), None)
        frame = built.frame if built is not None else None
        if dataset.kind is DatasetKind.TEMPORARY_VIEW and built is not None:
            return self.written_rows(built, dataset)
        if isinstance(frame, Unknown) and dataset.schema is None:
            return self.reading.unknown_table(
                session, dataset.name, frame.doubt, streaming=streaming, written=frame
            )
        if dataset.schema is None and frame is None:
            doubt = Doubt(
                f"'{name}'", "the flow that writes it cannot be analysed", call_sites.current_span()
            )
            known = self.reading.recording.doubt(doubt)
            return self.reading.unknown_table(session, dataset.name, known, streaming=streaming)
        schema = dataset.schema if dataset.schema is not None else frame.schema  # type: ignore[union-attr]
        return self.reading.empty_table(session, dataset.name, schema, streaming=streaming)

    def make(self, flow: DeclaredFlow) -> None:
        """Build the frame of a flow once, and store the error if its query raises one."""
        if flow.frame is not None or flow.error is not None:
            return
        if flow.name in self._in_progress:
            cycle = " → ".join([*self._in_progress[self._in_progress.index(flow.name) :], flow.name])
            flow.error = RecursionError(f"it reads itself: {cycle}")
            return
        self._in_progress.append(flow.name)
        try:
            with self._limited_time(), call_sites.attribute_to_statement(flow.span if flow.text else None):
                frame = flow.make()
        except WaitReached:
            flow.error = flow.error or TimeoutError("its function does not finish")
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a user's function may raise anything
            flow.error = flow.error or error
        else:
            if isinstance(frame, Absent):
                frame = Unknown(frame.doubt, self.reading.recording, streaming=True)
            if isinstance(frame, DataFrame | Unknown):
                flow.frame = frame
            else:
                returned = "None" if frame is None else _class_name(frame)
                flow.error = TypeError(f"its function must return a DataFrame; it returned {returned}")
        finally:
            self._in_progress.remove(flow.name)

    @contextlib.contextmanager
    def _limited_time(self) -> Iterator[None]:
        """Limit the time of a flow's function. The limit of a flow that reads it begins again afterwards."""
        seconds = PATIENCE if self.read_written is None else LONG_PATIENCE
        outer = self._limit
        if outer is not None:
            outer.close()
        try:
            with contextlib.ExitStack() as self._limit:
                self._limit.enter_context(time_limit(seconds))
                yield
        finally:
            self._limit = outer
            if outer is not None:
                outer.enter_context(time_limit(seconds))


def _class_name(value: Any) -> str:
    """Return the name that the class of a value has without the check."""
    return StreamingQuery.__name__ if isinstance(value, StreamingQuery) else type(value).__name__


def _file(dataset: DeclaredDataset) -> str:
    return dataset.span.file if dataset.span else ""


def _span(element: Any) -> Span | None:
    location = element.source_code_location
    with contextlib.suppress(AttributeError):
        if location.line_number is not None:
            return call_sites.line_span(location.filename, location.line_number)
    return None
