"""Turn a project of declarative pipelines into a project of Millstream: its flows become views and queries."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column

from millstream.checking.scripts.declarative.check import record_project
from millstream.checking.scripts.declarative.expectations import list_expectations
from millstream.checking.scripts.declarative.flow_graph import DatasetKind
from millstream.checking.scripts.execution.retries import NOTHING_GIVEN
from millstream.checking.scripts.execution.source_files import open_parts
from millstream.checking.scripts.interception import call_sites
from millstream.checking.scripts.interception.absent import has_mark
from millstream.checking.scripts.interception.placeholders import Unknown
from millstream.checking.scripts.migration import time_zone
from millstream.checking.scripts.migration.code_slice import CodeSlice, NotMovable, ScriptCode
from millstream.checking.scripts.migration.flow_sql import extract_query
from millstream.checking.scripts.migration.project_files import (
    MigratedProject,
    ProjectFiles,
    make_identifier,
)
from millstream.checking.scripts.migration.spec_parts import build_sink, build_source
from millstream.connectors import spark_formats
from millstream.connectors.api.ddl import quote_name
from millstream.spark import internals

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import SparkSession

    from millstream.checking.scripts.declarative.check import RecordedProject
    from millstream.checking.scripts.declarative.expectations import DeclaredExpectation
    from millstream.checking.scripts.declarative.flow_graph import DeclaredDataset, DeclaredFlow

_CDC_SETTINGS = ("keys", "sequence_by", "apply_as_deletes", "except_column_list", "stored_as_scd_type")
# An expression of PySpark's operators, before Spark has resolved them: `=`(op, 'd').
_COMPARISON = re.compile(r"^`(=|<|>|<=|>=|<=>)`\((\w+), ([^(),]+)\)$")
_OPERATOR = re.compile(r"`\W+`\(")


def migrate_project(
    spark: SparkSession, spec: Path, known_columns: Mapping[str, str] = NOTHING_GIVEN
) -> MigratedProject:
    """Return the project for one of declarative pipelines, given its spec. Its files run as in a check."""
    return FlowMigration(spark, record_project(spark, spec, known_columns), spec).write()


@dataclass(frozen=True)
class ViewParts:
    """A view of the project that is not yet written: SQL, or a function."""

    name: str
    reads: tuple[str, ...]
    """The sources and views that it reads."""
    sql: str = ""
    code: CodeSlice | None = None
    expectations: Sequence[DeclaredExpectation] = ()


class FlowMigration:
    """Collects the parts of a project from the flows of another one."""

    def __init__(self, spark: SparkSession, recorded: RecordedProject, spec: Path) -> None:
        self.spark = spark
        self.recorded = recorded
        self.recording = recorded.recording
        self.project = MigratedProject()
        self.files = ProjectFiles(spec, self.project)
        graph = recorded.graph
        self.datasets = dict(graph.datasets) if graph else {}
        self.flows = list(graph.flows) if graph else []
        self.views = {key: make_identifier(dataset.name) for key, dataset in self.datasets.items()}
        self.project.names = {name: self._source_name(name) for name in self.recording.sources}
        self.streams = {
            self.project.names[name] for name, source in self.recording.sources.items() if source.is_streaming
        }
        """The sources and views that are streams."""
        self.moved: set[str] = set()
        self.left: set[str] = set()
        self._in_progress: list[str] = []

    def write(self) -> MigratedProject:
        """Return the project. Nothing is written to disk."""
        for finding in self.recorded.result.findings:
            if str(finding.severity) == "error":
                where = f" (line {finding.span.line} of {finding.span.file})" if finding.span else ""
                self.project.differences.append(
                    f"the project has an error, {finding.code}{where}: {finding.message}"
                )
        for key, dataset in self.datasets.items():
            self._move(key, dataset)
        for flow in self.flows:
            if self._target_key(flow) not in self.datasets:
                self._leave(f"flow '{flow.name}'", flow.span, f"nothing declares '{flow.target}'")
        conf = self.recorded.project.configuration
        moved = (flow.frame for flow in self.flows if self._target_key(flow) in self.moved)
        if time_zone.depends_on_zone(moved, self.recording):
            self.project.differences.append(time_zone.NOTE)
        self.files.write(self.recorded.project.name, conf)
        return self.project

    def _key(self, name: str) -> str:
        assert self.recorded.graph is not None
        return self.recorded.graph.key(name)

    def _target_key(self, flow: DeclaredFlow) -> str:
        assert self.recorded.graph is not None
        return self.recorded.graph.target_key(flow)

    def _source_name(self, name: str) -> str:
        identifier = make_identifier(name)
        return f"{identifier}_source" if identifier in self.views.values() else identifier

    def _leave(self, what: str, span: Any, reason: object) -> None:
        where = f" (line {span.line} of {span.file})" if span else ""
        self.project.left.append(f"{what}{where}: {reason}")

    def _move(self, key: str, dataset: DeclaredDataset) -> None:
        """Move a dataset, or list why it cannot be moved. One that was moved or left already is not tried again."""
        if key in self.moved or key in self.left:
            return
        what = f"{dataset.kind} '{dataset.name}'"
        if key in self._in_progress:
            raise NotMovable(f"it reads itself, by {' → '.join(self._in_progress)}")
        self._in_progress.append(key)
        try:
            sink, mode = self._write_flows(key, dataset)
        except NotMovable as reason:
            self.left.add(key)
            self._leave(what, dataset.span, reason)
            return
        finally:
            self._in_progress.remove(key)
        self.moved.add(key)
        where = f" (line {dataset.span.line} of {dataset.span.file})" if dataset.span else ""
        name = self.views[key]
        if sink is None:
            self.project.moved.append(f"{what}{where}: view '{name}'")
            return
        self.project.queries[list(self.datasets).index(key) + 1] = name
        self.files.queries[name] = {"output_mode": mode, "trigger": "available_now", "to": sink}
        self.project.moved.append(f"{what}{where}: view and query '{name}'")

    def _write_flows(self, key: str, dataset: DeclaredDataset) -> tuple[dict[str, Any] | None, str]:
        """Write the view of a dataset, and return its sink and output mode; None for one without a sink."""
        flows = [flow for flow in self.flows if self._target_key(flow) == key]
        if not flows:
            raise NotMovable("no flow writes it")
        changes = [flow for flow in flows if flow.changes or _is_auto_cdc(flow)]
        if changes:
            if len(flows) > 1:
                raise NotMovable("an AUTO CDC flow and another flow write it")
            return self._write_changes(key, changes[0], dataset), "append"
        name = self.views[key]
        for expectation in dataset.expectations:
            if has_mark(expectation.condition):
                raise NotMovable(f"its expectation '{expectation.label}' has a setting that is not known")
        for flow in flows:
            self._refuse(flow, dataset)
        parts = [self._build_view(flow, self._view_name(flow, flows, name)) for flow in flows]
        is_stream = any(read in self.streams for part in parts for read in part.reads)
        if not is_stream and dataset.kind is not DatasetKind.TEMPORARY_VIEW:
            raise NotMovable("it reads no stream, and a query of the project is a stream")
        if len(parts) == 1:
            parts = [replace(parts[0], expectations=(*parts[0].expectations, *dataset.expectations))]
        for part in parts:
            self._write_view(part)
        if len(parts) > 1:
            self._write_union(flows, [part.name for part in parts], name, dataset.expectations)
        self.streams |= {name} if is_stream else set()
        streaming = _is_streaming(flows[0])
        if dataset.kind is DatasetKind.TEMPORARY_VIEW:
            return None, ""
        if dataset.kind is DatasetKind.SINK:
            query = next(query for query in self.recording.queries if query.name == flows[0].name)
            sink, notes = build_sink(query)
            self.project.differences += [f"sink '{dataset.name}': {note}" for note in notes]
            return sink, "append"
        mode = "append" if streaming else _batch_mode(flows[0])
        self.project.differences.append(
            f"{dataset.kind} '{dataset.name}' is the Delta table lake/{name}, not a table of the catalog"
            + ("" if streaming else "; it is kept up to date by a stream, not computed again as a whole")
        )
        return {spark_formats.DELTA: {"path": f"lake/{name}"}}, mode

    def _refuse(self, flow: DeclaredFlow, dataset: DeclaredDataset) -> None:
        """Raise NotMovable for a flow whose query cannot be a stream of the project."""
        if flow.error is not None:
            raise NotMovable(f"its query fails: {str(flow.error).partition(chr(10))[0]}")
        if isinstance(flow.frame, Unknown):
            raise NotMovable(f"{flow.frame.doubt.what} is not known: {flow.frame.doubt.why}")
        if flow.frame is None:
            raise NotMovable("its query was not built")
        if not _is_streaming(flow) and dataset.kind is not DatasetKind.TEMPORARY_VIEW:
            plan = str(internals.analyzed_plan(flow.frame).toString())
            for word, reason in _NO_STREAM.items():
                if re.search(rf"\b{word}\b", plan):
                    raise NotMovable(
                        f"it is a batch query that {reason}, which no stream can keep up to date"
                    )
            if _CLOCK.search(plan):
                raise NotMovable(
                    "it selects rows by the clock, and a stream does not remove rows that become too old"
                )

    def _view_name(self, flow: DeclaredFlow, flows: list[DeclaredFlow], name: str) -> str:
        """Return the name of a flow's view: that of its table, if it is the only one that writes it."""
        if len(flows) == 1:
            return name
        part = make_identifier(flow.name)
        return f"{part}_flow" if part in self.views.values() else part

    def _build_view(self, flow: DeclaredFlow, name: str) -> ViewParts:
        """Return the view of one flow. The datasets that it reads are moved before. Raises NotMovable."""
        reads: dict[str, None] = {}

        def read(table: str, is_stream: bool, line: int) -> str:
            view = self._read(flow, table, line, is_stream=is_stream)
            reads.update({view: None} if view else {})
            return view

        if flow.text is not None:
            sql = extract_query(flow.text, flow.span.line if flow.span else 1, read)
            return ViewParts(name, tuple(reads), f"{sql}\n")
        function = inspect.unwrap(flow.make)
        file = inspect.getsourcefile(function)
        if file is None or not hasattr(function, "__name__"):
            raise NotMovable("its function is not in a file")
        display = call_sites.display_name(file)
        lines = {
            source.span.line: self.project.names[source.name]
            for source in self.recording.sources.values()
            if source.span and source.span.file == display
        }
        with open_parts(Path(file)) as parts:
            texts = [part.text for part in parts]
        code = ScriptCode(texts, lines, read).extract_function(function.__name__, name)
        return ViewParts(name, tuple(code.sources), code=code, expectations=list_expectations(function))

    def _write_view(self, parts: ViewParts) -> None:
        """Write a view, and the sources that it reads."""
        for name, spec_name in self.project.names.items():
            if spec_name in parts.reads:
                self._write_source(name)
        if parts.code is None:
            self._write_sql(parts.name, parts.sql, parts.expectations)
            return
        self.files.imports |= dict.fromkeys(parts.code.imports)
        self.files.definitions |= dict.fromkeys(parts.code.definitions)
        self.files.functions.append(parts.code.function)
        if parts.expectations:
            self.files.views[parts.name] = {
                "python": f"transforms:{parts.name}",
                "expect": self._expect(parts.name, parts.expectations),
            }

    def _write_sql(self, name: str, sql: str, expectations: Sequence[DeclaredExpectation]) -> None:
        self.files.views[name] = (
            {"sql": sql, "expect": self._expect(name, expectations)} if expectations else sql
        )

    def _expect(self, view: str, expectations: Sequence[DeclaredExpectation]) -> dict[str, Any]:
        """Return expectations as a view has them. Labels that become the same name are numbered."""
        self.project.differences.append(
            f"view '{view}': a row whose condition is NULL breaks an expectation too"
        )
        result: dict[str, Any] = {}
        for expectation in expectations:
            label = name = make_identifier(expectation.label)
            number = 1
            while name in result:
                number += 1
                name = f"{label}_{number}"
            result[name] = {"that": expectation.condition, "otherwise": str(expectation.otherwise)}
        return result

    def _write_union(
        self,
        flows: list[DeclaredFlow],
        parts: list[str],
        name: str,
        expectations: Sequence[DeclaredExpectation],
    ) -> None:
        """Write one view of the views of several flows into a table."""
        assert flows[0].frame is not None
        columns = ", ".join(quote_name(column) for column in flows[0].frame.columns)
        selects = [f"SELECT {columns} FROM {part}\n" for part in parts]  # noqa: S608 - a view of the project
        self._write_sql(name, "UNION ALL\n".join(selects), expectations)
        self.project.differences.append(
            f"the {len(flows)} flows into '{name}' are one query with one checkpoint: a UNION ALL of their views"
        )

    def _write_changes(self, key: str, flow: DeclaredFlow, dataset: DeclaredDataset) -> dict[str, Any]:
        """Write the view of an AUTO CDC flow, and return its sink."""
        settings = flow.changes
        if not settings:
            raise NotMovable("its AUTO CDC statement has no source, keys or sequence that are recognised")
        known = {*_CDC_SETTINGS, "source", "name", "target", "source_code_location"}
        unknown = [name for name, value in settings.items() if value is not None and name not in known]
        if unknown:
            raise NotMovable(f"its AUTO CDC flow has {', '.join(unknown)}, which a sink with cdc has not")
        source = self._read(flow, str(settings["source"]), flow.span.line if flow.span else 0, is_stream=True)
        if not source:
            raise NotMovable(f"the table '{settings['source']}' is not one of the project")
        plain = {name: _plain(self.spark, settings[name]) for name in _CDC_SETTINGS if name in settings}
        cdc = {name: value for name, value in plain.items() if value not in (None, [])}
        name = self.views[key]
        sql = f"SELECT * FROM {source}\n"  # noqa: S608 - a view of the project
        self._write_sql(name, sql, dataset.expectations)
        self.project.differences.append(
            f"AUTO CDC into '{flow.target}' is the Delta table lake/{name} with cdc: deletions are stored next to it"
        )
        return {spark_formats.DELTA: {"path": f"lake/{name}", "cdc": cdc}}

    def _read(self, flow: DeclaredFlow, name: str, line: int, *, is_stream: bool) -> str:
        """Return the view for a table that a flow reads; "" for one outside the project. Raises NotMovable."""
        key = self._key(name)
        dataset = self.datasets.get(key)
        if dataset is None or dataset.kind is DatasetKind.SINK:
            return self.project.names.get(name, "")
        self._move(key, dataset)
        if key in self.left:
            raise NotMovable(f"line {line}: it reads '{name}', which is not moved")
        read = next(other for other in self.flows if self._target_key(other) == key)
        if not is_stream and _is_streaming(flow) and (_is_streaming(read) or read.changes):
            raise NotMovable(
                f"line {line}: it joins a stream with the table '{name}', which is a stream here"
            )
        mode = self.files.queries.get(self.views[key], {}).get("output_mode")
        if read.changes or _is_auto_cdc(read) or mode == "complete":
            raise NotMovable(
                f"line {line}: it reads '{name}', whose rows change, and a view has only added rows"
            )
        return self.views[key]

    def _write_source(self, name: str) -> None:
        """Write a source of the recording into the spec."""
        source, spec_name = self.recording.sources[name], self.project.names[name]
        if spec_name in self.files.sources:
            return
        schema = self.recording.schemas.get(name)
        columns = {column.name: column.dataType.simpleString() for column in schema.fields} if schema else {}
        entry, notes = build_source(source, columns)
        self.files.sources[spec_name] = entry
        self.project.differences += [f"source '{name}': {note}" for note in notes]


# Nodes of a plan, and what they do.
_NO_STREAM = {
    "Sort": "sorts",
    "GlobalLimit": "limits its rows",
    "Window": "computes over a window of rows",
    "Except": "takes a difference",
    "Intersect": "takes an intersection",
}


# A condition with the clock in the text of a plan.
_CLOCK = re.compile(
    r"^[\s:+|-]*(?:Filter|Join)\b.*\b(?:current_date|current_timestamp|now|localtimestamp)\(", re.MULTILINE
)


def _is_streaming(flow: DeclaredFlow) -> bool:
    return flow.frame is not None and bool(flow.frame.isStreaming)


def _is_auto_cdc(flow: DeclaredFlow) -> bool:
    return isinstance(flow.frame, Unknown) and flow.frame.doubt.what.startswith("the AUTO CDC flow")


def _batch_mode(flow: DeclaredFlow) -> str:
    """Return the output mode in which a stream writes what a batch query computes."""
    assert flow.frame is not None
    plan = str(internals.analyzed_plan(flow.frame).toString())  # type: ignore[arg-type]
    return "complete" if re.search(r"\b(?:Aggregate|Distinct|Deduplicate)\b", plan) else "append"


def _plain(spark: SparkSession, value: Any) -> Any:
    """Return a setting as a spec has it: a column as SQL. Raises NotMovable."""
    if isinstance(value, Column):
        text = _COMPARISON.sub(r"\2 \1 \3", internals.column_sql(spark, value))
        if _OPERATOR.search(text):
            raise NotMovable(f"its expression is not found as SQL: {text}")
        return text
    if isinstance(value, list | tuple):
        return [_plain(spark, item) for item in value]
    return int(value) if str(value) in ("1", "2") else value
