"""The datasets and flows of a declarative pipeline: registered as Spark does, made when they are read."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from pyspark.pipelines.graph_element_registry import GraphElementRegistry
from pyspark.pipelines.output import MaterializedView, Sink, StreamingTable, TemporaryView
from pyspark.sql import DataFrame

from millstream.diagnostics.catalogue import finding
from millstream.runtime.scripts import calls
from millstream.runtime.scripts.record import Doubt
from millstream.runtime.scripts.unknown import Absent, Unknown

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.pipelines.flow import AutoCdcFlow, Flow
    from pyspark.pipelines.output import Output

    from millstream.diagnostics.finding import Finding, Span
    from millstream.runtime.scripts.project import Project
    from millstream.runtime.scripts.reading import Reading


class Kind(StrEnum):
    """What a dataset is."""

    STREAMING_TABLE = "streaming table"
    MATERIALIZED_VIEW = "materialized view"
    TEMPORARY_VIEW = "temporary view"
    SINK = "sink"


@dataclass
class Dataset:
    """Something that flows write."""

    name: str
    kind: Kind
    span: Span | None
    schema: Any = None
    format: str = ""
    options: dict[str, str] = field(default_factory=dict)


@dataclass
class Written:
    """A flow: a query, and the dataset it writes."""

    name: str
    target: str
    make: Callable[[], Any]
    span: Span | None
    text: str | None = None
    """Its statement, where it is one of SQL."""
    frame: DataFrame | Unknown | None = None
    failed: Exception | None = None


class Graph(GraphElementRegistry):
    """Takes what a project's files register, and gives the frames of its flows."""

    def __init__(self, project: Project, reading: Reading) -> None:
        self.project = project
        self.reading = reading
        self.datasets: dict[str, Dataset] = {}
        self.flows: list[Written] = []
        self.findings: list[Finding] = []
        self.sql: Callable[[str, Path], None] = lambda _text, _file: None
        self._under_way: list[str] = []

    def register_output(self, output: Output) -> None:
        """Add a dataset that Python declares."""
        span = _span(output)
        match output:
            case StreamingTable():
                made = Dataset(output.name, Kind.STREAMING_TABLE, span, output.schema, output.format or "")
            case MaterializedView():
                made = Dataset(output.name, Kind.MATERIALIZED_VIEW, span, output.schema, output.format or "")
            case TemporaryView():
                made = Dataset(output.name, Kind.TEMPORARY_VIEW, span)
            case Sink():
                made = Dataset(output.name, Kind.SINK, span, None, output.format, dict(output.options))
            case _:
                return
        self.declare(made)

    def register_flow(self, flow: Flow) -> None:
        """Add a flow whose query is a Python function."""
        self.flows.append(Written(flow.name, flow.target, flow.func, _span(flow)))

    def register_auto_cdc_flow(self, flow: AutoCdcFlow) -> None:
        """Add a flow of changes, which is not judged."""
        self.changes(flow.target, _span(flow))

    def register_sql(self, sql_text: str, file_path: Path) -> None:
        """Add what a file of SQL declares."""
        self.sql(sql_text, file_path)

    def changes(self, target: str, span: Span | None) -> None:
        """A flow of changes into a table: its query is Spark's own."""
        doubt = Doubt(
            f"the flow of changes into '{target}'", "its query is made by Spark when the pipeline runs", span
        )
        self.reading.recording.doubt(doubt)
        unknown = Unknown(doubt, self.reading.recording, streaming=True)
        self.flows.append(Written(target, target, lambda: unknown, span))

    def declare(self, made: Dataset) -> None:
        """Add a dataset; a second one of the same name is refused, as Spark does."""
        key = self.key(made.name)
        if key in self.datasets:
            before = self.datasets[key]
            line = f" (line {before.span.line} of {before.span.file})" if before.span else ""
            self.findings.append(
                finding(
                    "MS118",
                    f"{made.kind} '{made.name}' has the name of a {before.kind}{line}",
                    made.span,
                    why="Spark refuses two datasets of one name",
                    fix="give one of them another name",
                )
            )
            return
        self.datasets[key] = made

    def key(self, name: str) -> str:
        """A dataset's name without the pipeline's own catalog and database, in lower case."""
        parts = [part.strip("`").lower() for part in name.split(".")]
        home = [self.project.catalog.lower(), self.project.database.lower()]
        if len(parts) == 3 and parts[0] == home[0]:
            parts = parts[1:]
        if len(parts) == 2 and parts[0] == home[1]:
            parts = parts[1:]
        return ".".join(parts)

    def read(self, session: Any, name: str, *, streaming: bool) -> Any:
        """A dataset of the pipeline as a reader gives it; None for a name that is none of its."""
        made = self.datasets.get(self.key(name))
        if made is None or made.kind is Kind.SINK:
            return None
        flows = [flow for flow in self.flows if self.key(flow.target) == self.key(name)]
        for flow in flows:
            self.make(flow)
        frame = next((flow.frame for flow in flows if flow.frame is not None), None)
        if made.kind is Kind.TEMPORARY_VIEW and frame is not None:
            return frame
        if isinstance(frame, Unknown):
            return Unknown(frame.doubt, self.reading.recording, streaming=streaming)
        if made.schema is None and frame is None:
            doubt = Doubt(f"'{name}'", "the flow that writes it cannot be made", calls.here())
            return Unknown(doubt, self.reading.recording, streaming=streaming)
        schema = made.schema if made.schema is not None else frame.schema  # type: ignore[union-attr]
        return self.reading.of_table(session, made.name, schema, streaming=streaming)

    def make(self, flow: Written) -> None:
        """Make the frame of a flow once; what its query raises is kept."""
        if flow.frame is not None or flow.failed is not None:
            return
        if flow.name in self._under_way:
            circle = " → ".join([*self._under_way[self._under_way.index(flow.name) :], flow.name])
            flow.failed = RecursionError(f"it reads itself: {circle}")
            return
        self._under_way.append(flow.name)
        try:
            with calls.making(flow.span if flow.text else None):
                made = flow.make()
        except Exception as wrong:  # noqa: BLE001 - a user's function may raise anything
            flow.failed = flow.failed or wrong
        else:
            if isinstance(made, Absent):
                made = Unknown(made.doubt, self.reading.recording, streaming=True)
            if isinstance(made, DataFrame | Unknown):
                flow.frame = made
            else:
                given = "None" if made is None else type(made).__name__
                flow.failed = TypeError(f"its function must return a DataFrame; it returned {given}")
        finally:
            self._under_way.remove(flow.name)


def _span(made: Any) -> Span | None:
    place = made.source_code_location
    with contextlib.suppress(AttributeError):
        if place.line_number is not None:
            return calls.line_span(place.filename, place.line_number)
    return None
