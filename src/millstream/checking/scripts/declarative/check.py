"""Check a declarative-pipelines project: load its files, and check each registered flow like a query."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import sys
import time
import types
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Protocol

from pyspark import pipelines
from pyspark.errors import PySparkException
from pyspark.pipelines.graph_element_registry import graph_element_registration_context

from millstream.checking.compat import star_imports
from millstream.checking.scripts.declarative.dlt_module import build_dlt_module, install_extensions
from millstream.checking.scripts.declarative.flow_graph import DatasetKind, FlowGraph
from millstream.checking.scripts.declarative.project_spec import apply_configuration, read_project_spec
from millstream.checking.scripts.declarative.sql_files import SqlFile
from millstream.checking.scripts.execution.broken_cells import compile_part
from millstream.checking.scripts.execution.error_causes import find_cause
from millstream.checking.scripts.execution.retries import NOTHING_GIVEN, Retries
from millstream.checking.scripts.execution.script_errors import describe_error
from millstream.checking.scripts.execution.source_files import try_open_parts
from millstream.checking.scripts.findings import check_recording
from millstream.checking.scripts.interception import call_sites
from millstream.checking.scripts.interception.absent import MARK
from millstream.checking.scripts.interception.monkeypatch import Patches
from millstream.checking.scripts.interception.placeholders import Unknown
from millstream.checking.scripts.interception.recording import Doubt, Recording, StartedQuery
from millstream.checking.scripts.interception.sandbox import WaitReached
from millstream.checking.scripts.interception.spark_formats import short_name
from millstream.checking.scripts.runner import (
    MOST_RUNS,
    MOST_SECONDS,
    PATIENCE,
    ZONE,
    ScriptRun,
    intercept_spark,
)
from millstream.checking.scripts.script_process import Printed, as_python_runs, time_limit
from millstream.connectors import spark_formats
from millstream.diagnostics.finding import Severity
from millstream.diagnostics.judged_query import JudgedQuery
from millstream.diagnostics.spec_codes import build_finding
from millstream.spec.trigger import Trigger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from pyspark.sql import SparkSession

    from millstream.checking.check import CheckResult
    from millstream.checking.scripts.declarative.flow_graph import DeclaredDataset, DeclaredFlow
    from millstream.checking.scripts.declarative.project_spec import Project
    from millstream.checking.scripts.execution.source_files import CodePart
    from millstream.checking.scripts.interception.recording import ScriptExecution
    from millstream.checking.scripts.runner import ScriptPatches
    from millstream.diagnostics.finding import Finding

# What Spark says of Python's rows whose types it cannot find out, and of too few arguments, made of unknown columns.
_ABOUT_ROWS = (
    "CANNOT_DETERMINE_TYPE",
    "CANNOT_INFER_EMPTY_SCHEMA",
    "CANNOT_INFER_SCHEMA_FOR_TYPE",
    "WRONG_NUM",
)

# The classes of errors that the check raises itself for a flow.
_OF_CHECK = re.compile(r"^(?:RecursionError|TypeError|TimeoutError): ")


def check_project(
    spark: SparkSession, spec: Path, known_columns: Mapping[str, str] = NOTHING_GIVEN
) -> CheckResult:
    """Check a Spark declarative-pipelines project by its `spark-pipeline.yml`.

    Its Python files run in this process, and each function of a flow is called once. Connects to nothing and
    writes nothing. Never raises for anything in the project.
    """
    return record_project(spark, spec, known_columns).result


class FlowExecution(Protocol):
    """Runs the flows of a project over given rows."""

    @property
    def execution(self) -> ScriptExecution:
        """What gives the rows of the sources."""

    def run(self, graph: FlowGraph, session: SparkSession) -> None:
        """Fill the tables of all datasets."""


@dataclass(frozen=True)
class RecordedProject:
    """A project that was checked: its files, and its flows if they could be loaded."""

    project: Project
    recording: Recording
    result: CheckResult
    graph: FlowGraph | None = None


def record_project(
    spark: SparkSession,
    spec: Path,
    known_columns: Mapping[str, str] = NOTHING_GIVEN,
    execution: FlowExecution | None = None,
) -> RecordedProject:
    """Check a project as `check_project` does, and return its flows too. With an `execution`, its flows run."""
    project = read_project_spec(spec)
    retries = Retries(known_columns, execution=execution.execution if execution else None)
    end = time.monotonic() + MOST_SECONDS
    with contextlib.ExitStack() as opened:
        # The cells of a notebook are the same files in each run, whose own temporary files do not outlive it.
        read = {file: try_open_parts(file, opened) for file in project.sources if file.suffix != ".sql"}

        def open_file(file: Path) -> list[CodePart]:
            if isinstance(parts := read[file], Exception):
                raise parts
            return parts

        for _ in range(MOST_RUNS):
            recorded, goes_further = _check_once(spark, spec, project, retries, open_file, execution)
            if not goes_further or time.monotonic() > end:
                break
    return recorded


def _check_once(
    spark: SparkSession,
    spec: Path,
    project: Project,
    retries: Retries,
    open_file: Callable[[Path], list[CodePart]],
    execution: FlowExecution | None,
) -> tuple[RecordedProject, bool]:
    """Load and check the project once. The second value is whether another run can go further."""
    recording = retries.recording()
    script_run = ScriptRun(recording, is_endless=True, is_script=False)
    findings = list(project.findings)
    batch_flows: list[JudgedQuery] = []
    graph: FlowGraph | None = None
    if not any(entry.code == "MS001" for entry in findings):
        call_sites.reset_caches()
        with (
            intercept_spark(spark, recording) as inside,
            as_python_runs(spec, []) as printed,
            Patches() as patches,
            retries.applied(inside.session, recording, patches),
        ):
            script_run.texts = inside.statements.texts
            graph = FlowGraph(project, inside.reading)
            inside.reading.read_dataset = lambda session, name, streaming: graph.read(
                session, name, streaming=streaming
            )
            dlt = build_dlt_module(graph)
            # Spark's own function requires Spark Connect.
            patches.set(pipelines, "create_auto_cdc_flow", vars(dlt)["create_auto_cdc_flow"])
            # Databricks has more functions in this module than Spark, and more settings of them.
            for name, value in vars(dlt).items():
                if not name.startswith("_") and not hasattr(pipelines, name):
                    patches.set(pipelines, name, graph.for_databricks(value))
            install_extensions(graph, patches)
            if project.is_for_databricks or spec.suffix not in (".yml", ".yaml"):
                # Files without a spec of Spark are for Databricks, whose version of Spark is not known.
                star_imports.restore_names(patches)
            findings += apply_configuration(project, inside.session.conf)
            installed = importlib.util.find_spec("dlt")
            # A folder of the project may have this name too.
            if installed is None or not installed.origin or call_sites.is_user_file(installed.origin):
                sys.modules["dlt"] = dlt
                patches.after(partial(sys.modules.__delitem__, "dlt"))
            loader = _FileLoader(project, graph, inside, retries, printed, open_file)
            findings += loader.load()
            if loader.lacks_more:
                result = check_recording(script_run, project.file, findings)
                return RecordedProject(project, recording, result), True
            if execution is not None:
                execution.run(graph, inside.session)
            findings += _build_flows(project, graph, script_run)
            if _provide_for_flows(graph, retries, project) or _skip_causes(graph, retries, recording):
                return RecordedProject(project, recording, check_recording(script_run, project.file)), True
            findings += graph.findings
            kinds = {dataset.kind for dataset in graph.datasets.values()}
            if graph.is_for_databricks or DatasetKind.TABLE in kinds:
                recording.conf.setdefault(ZONE, "UTC")
            batch_flows = [*_list_batch_flows(graph), *graph.unparsed]
    result = check_recording(script_run, project.file, findings)
    result = replace(result, judged=(*(result.judged or ()), *batch_flows))
    return RecordedProject(project, recording, result, graph), retries.assumed.has_grown


def _provide_for_flows(graph: FlowGraph, retries: Retries, project: Project) -> bool:
    """Give the next run the modules and names that flows lack. Returns whether there is a new one."""
    recording = graph.reading.recording
    errors = [flow.error for flow in graph.flows if flow.error is not None]
    provided = [retries.provide(error, project.sources[0], recording) for error in errors]
    return any(provided)


def _skip_causes(graph: FlowGraph, retries: Retries, recording: Recording) -> bool:
    """Leave out the statements of flows that fail only in a check. Returns whether another run can go further."""
    errors = [flow.error for flow in graph.flows if flow.error is not None and flow.is_only_here]
    new = [retries.skip_cause(error, recording, "")[1] for error in errors]
    return any(new)


def _list_batch_flows(graph: FlowGraph) -> list[JudgedQuery]:
    """Return the flows of materialized views, which Spark runs as batch queries."""
    flows = []
    for flow in graph.flows:
        if flow.frame is None or bool(flow.frame.isStreaming):
            continue
        doubt = flow.frame.doubt if isinstance(flow.frame, Unknown) and flow.frame.probe is None else None
        reason = f"{doubt.what} is not known, because {doubt.why}".replace(MARK, "…") if doubt else ""
        flows.append(JudgedQuery(flow.name, flow.span, reason))
    return flows


@dataclass
class _FileLoader:
    """Loads the files of a project. If one of them raises an error, the others are loaded nevertheless."""

    project: Project
    graph: FlowGraph
    inside: ScriptPatches
    retries: Retries
    printed: Printed
    open_file: Callable[[Path], list[CodePart]]
    lacks_more: bool = False
    """True if a placeholder of the next run lets a file go further."""

    def load(self) -> Iterator[Finding]:
        """Load all files, and yield a finding for each one that does not reach its end."""
        self.graph.sql = SqlFile(self.inside.session, self.graph, self.inside.statements).register
        os.chdir(self.project.folder)
        sys.path.insert(0, str(self.project.folder))
        with graph_element_registration_context(self.graph):
            for file in self.project.sources:
                try:
                    self._load_file(file)
                except WaitReached:
                    place = call_sites.line_span(str(file), 1)
                    yield build_finding("MS114", "the file does not finish", place)
                except (Exception, SystemExit) as error:  # noqa: BLE001 - a user's file may raise anything
                    yield from self._failure(error, file)

    def _load_file(self, file: Path) -> None:
        if file.suffix == ".sql":
            self.graph.register_sql(file.read_text(encoding="utf-8"), file)
            return
        # The names under which Databricks and Spark run a file.
        module = types.ModuleType("<run_path>" if self.project.has_spec else "__main__")
        module.__file__ = str(file)
        vars(module)["spark"] = self.inside.session
        sys.modules[module.__name__] = module
        with time_limit(PATIENCE):
            for part in self.open_file(file):
                recording = self.graph.reading.recording
                code = compile_part(part, file, self.retries.skipped, vars(module), recording)
                if code is not None:
                    exec(code, vars(module))  # noqa: S102 - the purpose of the check

    def _failure(self, error: BaseException, file: Path) -> Iterator[Finding]:
        recording = self.graph.reading.recording
        if self.retries.provide(error, file, recording):
            self.lacks_more = True
            return
        is_only_here, goes_further = self.retries.skip_cause(error, recording, self.printed.getvalue())
        if goes_further:
            self.lacks_more = True
            return
        raised = describe_error(error, file, self.inside.statements.texts)
        yield build_finding(
            "MS114",
            f"the file ends here: {raised.what}",
            raised.span,
            severity=Severity.INFO if is_only_here else Severity.ERROR,
            why=raised.why,
            fix=raised.fix,
        )


def _build_flows(project: Project, graph: FlowGraph, script_run: ScriptRun) -> Iterator[Finding]:
    """Build the frame of every flow, and record the flows that are streams."""
    for flow in graph.flows:
        dataset = graph.datasets.get(graph.target_key(flow))
        if dataset is None:
            fix = f"declare it: create_streaming_table('{flow.target}'), or CREATE STREAMING TABLE {flow.target}"
            message = f"flow '{flow.name}' writes '{flow.target}', which nothing declares"
            yield build_finding("MS118", message, flow.span, fix=fix, query=flow.name)
            continue
        graph.make(flow)
        if _is_only_here(flow, script_run.recording):
            flow.is_only_here = True
            doubt = Doubt(f"flow '{flow.name}'", "this fails only in a check", flow.span)
            flow.frame = Unknown(script_run.recording.doubt(doubt), script_run.recording, streaming=True)
            _record(graph, flow, dataset)
        elif flow.error is not None:
            raised = describe_error(flow.error, project.folder, script_run.texts, flow.text)
            yield build_finding(
                "MS118",
                f"flow '{flow.name}': {_OF_CHECK.sub('', raised.what)}",
                raised.span or flow.span,
                why=raised.why,
                fix=raised.fix,
                query=flow.name,
            )
        elif flow.frame is not None:
            is_batch_allowed = graph.is_for_databricks and dataset.kind is DatasetKind.STREAMING_TABLE
            if flow.needs_stream or not is_batch_allowed:
                yield from _kind_findings(flow, dataset)
            if dataset.kind in (DatasetKind.STREAMING_TABLE, DatasetKind.SINK, DatasetKind.TABLE):
                _record(graph, flow, dataset)
    targets = {graph.target_key(flow) for flow in graph.flows}
    for key, dataset in graph.datasets.items():
        if key not in targets and dataset.kind is not DatasetKind.SINK and not dataset.is_unreadable:
            yield build_finding(
                "MS118",
                f"{dataset.kind} '{dataset.name}' has no flow",
                dataset.span,
                why="Spark refuses a dataset that no flow writes: PIPELINE_DATASET_WITHOUT_FLOW",
                fix="add a query to it, or add a flow that writes to it",
            )
    if not graph.datasets and not graph.flows and not project.findings:
        yield build_finding(
            "MS115",
            "the project declares no dataset",
            severity=Severity.INFO,
            why="only the flows of datasets are checked",
        )


def _is_only_here(flow: DeclaredFlow, recording: Recording) -> bool:
    """Return whether the error of a flow has its cause in the check. What Spark says of known columns does not."""
    error = flow.error
    if error is None:
        return False
    is_of_rows = isinstance(error, PySparkException) and str(error.getCondition()).startswith(_ABOUT_ROWS)
    if isinstance(error, PySparkException) and not is_of_rows and MARK not in str(error):
        return False
    return find_cause(error, recording, "") is not None


def _kind_findings(flow: DeclaredFlow, dataset: DeclaredDataset) -> Iterator[Finding]:
    """Yield a finding if the flow reads a stream and its dataset needs a batch query, or the reverse."""
    streaming = bool(flow.frame.isStreaming) if flow.frame is not None else False
    is_known = not isinstance(flow.frame, Unknown) or (flow.needs_stream and flow.frame.probe is not None)
    if flow.text is None and not is_known:
        # Only SQL tells whether it reads a stream whatever the columns are.
        return
    if dataset.kind in (DatasetKind.STREAMING_TABLE, DatasetKind.SINK) and not streaming:
        yield build_finding(
            "MS118",
            f"flow '{flow.name}' of {dataset.kind} '{dataset.name}' reads no stream",
            flow.span,
            why="Spark refuses it: INVALID_FLOW_QUERY_TYPE.BATCH_RELATION_FOR_STREAMING_TABLE",
            fix="read a source as a stream: STREAM name in SQL, spark.readStream in Python; or make it a"
            " materialized view",
            query=flow.name,
        )
    if dataset.kind is DatasetKind.MATERIALIZED_VIEW and streaming:
        yield build_finding(
            "MS118",
            f"flow '{flow.name}' of materialized view '{dataset.name}' reads a stream",
            flow.span,
            why="Spark refuses it: INVALID_FLOW_QUERY_TYPE.STREAMING_RELATION_FOR_MATERIALIZED_VIEW",
            fix="read its sources as tables, or make it a streaming table",
            query=flow.name,
        )


def _record(graph: FlowGraph, flow: DeclaredFlow, dataset: DeclaredDataset) -> None:
    """Record a flow as a query in append mode with the available-now trigger. Spark stores its checkpoint."""
    recording = graph.reading.recording
    assert flow.frame is not None
    if not flow.frame.isStreaming:
        return
    recording.queries.append(
        StartedQuery(
            number=len(recording.queries) + 1,
            frame=graph.written_rows(flow, dataset),
            name=flow.name,
            trigger=Trigger(available_now=True),
            format=short_name(dataset.format or spark_formats.DEFAULT),
            target=dataset.name,
            options=dict(dataset.options),
            checkpoint=f"the pipeline's storage, {flow.name}",
            span=flow.span,
        )
    )
