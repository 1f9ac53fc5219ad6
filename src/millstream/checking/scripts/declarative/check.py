"""Check a declarative-pipelines project: load its files, and check each registered flow like a query."""

from __future__ import annotations

import importlib.util
import os
import sys
import types
from functools import partial
from typing import TYPE_CHECKING, Any

from pyspark import pipelines
from pyspark.pipelines.graph_element_registry import graph_element_registration_context

from millstream.checking.scripts.declarative.dlt_module import build_dlt_module
from millstream.checking.scripts.declarative.flow_graph import DatasetKind, FlowGraph
from millstream.checking.scripts.declarative.project_spec import read_project_spec
from millstream.checking.scripts.declarative.sql_files import SqlFile
from millstream.checking.scripts.findings import check_recording
from millstream.checking.scripts.interception import call_sites
from millstream.checking.scripts.interception.monkeypatch import Patches
from millstream.checking.scripts.interception.placeholders import Unknown
from millstream.checking.scripts.interception.recording import Recording, StartedQuery
from millstream.checking.scripts.interception.sandbox import WaitReached, as_python_runs, time_limit
from millstream.checking.scripts.interception.spark_formats import short_name
from millstream.checking.scripts.runner import (
    NOTHING_GIVEN,
    PATIENCE,
    ScriptRun,
    describe_error,
    intercept_spark,
)
from millstream.connectors import spark_formats
from millstream.diagnostics.finding import Severity
from millstream.diagnostics.spec_codes import build_finding
from millstream.spec.trigger import Trigger

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from pyspark.sql import SparkSession

    from millstream.checking.check import CheckResult
    from millstream.checking.scripts.declarative.flow_graph import DeclaredDataset, DeclaredFlow
    from millstream.checking.scripts.declarative.project_spec import Project
    from millstream.checking.scripts.runner import ScriptPatches
    from millstream.diagnostics.finding import Finding


def check_project(
    spark: SparkSession, spec: Path, known_columns: Mapping[str, str] = NOTHING_GIVEN
) -> CheckResult:
    """Check a Spark declarative-pipelines project by its `spark-pipeline.yml`.

    Its Python files run in this process, and each function of a flow is called once. Connects to nothing and
    writes nothing. Never raises for anything in the project.
    """
    project = read_project_spec(spec)
    recording = Recording(known_columns=known_columns)
    script_run = ScriptRun(recording, is_endless=True, is_script=False)
    findings = list(project.findings)
    if not any(entry.code == "MS001" for entry in findings):
        call_sites.reset_caches()
        with intercept_spark(spark, recording) as inside, as_python_runs(spec, []), Patches() as patches:
            script_run.texts = inside.statements.texts
            graph = FlowGraph(project, inside.reading)
            inside.reading.read_dataset = lambda session, name, streaming: graph.read(
                session, name, streaming=streaming
            )
            patches.set(pipelines, "create_auto_cdc_flow", _auto_cdc_replacement(graph))
            for key, value in project.configuration.items():
                inside.session.conf.set(key, value)
            if importlib.util.find_spec("dlt") is None:
                sys.modules["dlt"] = build_dlt_module(graph)
                patches.after(partial(sys.modules.__delitem__, "dlt"))
            findings += _load_files(project, graph, inside)
            findings += _build_flows(project, graph, script_run)
            findings += graph.findings
    return check_recording(script_run, project.file, findings)


def _load_files(project: Project, graph: FlowGraph, inside: ScriptPatches) -> Iterator[Finding]:
    """Load the project's files. If one of them raises an error, load the others nevertheless."""
    graph.sql = SqlFile(inside.session, graph, inside.statements).register
    os.chdir(project.folder)
    sys.path.insert(0, str(project.folder))
    with graph_element_registration_context(graph):
        for file in project.sources:
            try:
                if file.suffix == ".sql":
                    graph.register_sql(file.read_text(encoding="utf-8"), file)
                    continue
                module = types.ModuleType(file.stem)
                module.__file__ = str(file)
                vars(module)["spark"] = inside.session
                with time_limit(PATIENCE):
                    exec(compile(file.read_bytes(), str(file), "exec"), vars(module))  # noqa: S102 - the purpose of the check
            except WaitReached:
                yield build_finding("MS114", "the file does not finish", call_sites.line_span(str(file), 1))
            except (Exception, SystemExit) as error:  # noqa: BLE001 - a user's file may raise anything
                raised = describe_error(error, file, inside.statements.texts)
                yield build_finding(
                    "MS114", f"the file ends here: {raised.what}", raised.span, why=raised.why, fix=raised.fix
                )


def _build_flows(project: Project, graph: FlowGraph, script_run: ScriptRun) -> Iterator[Finding]:
    """Build the frame of every flow, and record the flows that are streams."""
    for flow in graph.flows:
        dataset = graph.datasets.get(graph.key(flow.target))
        if dataset is None:
            fix = f"declare it: create_streaming_table('{flow.target}'), or CREATE STREAMING TABLE {flow.target}"
            message = f"flow '{flow.name}' writes '{flow.target}', which nothing declares"
            yield build_finding("MS118", message, flow.span, fix=fix, query=flow.name)
            continue
        graph.make(flow)
        if flow.error is not None:
            raised = describe_error(flow.error, project.folder, script_run.texts, flow.text)
            yield build_finding(
                "MS118",
                f"flow '{flow.name}': {raised.what.removeprefix('RecursionError: ').removeprefix('TypeError: ')}",
                raised.span or flow.span,
                why=raised.why,
                fix=raised.fix,
                query=flow.name,
            )
        elif flow.frame is not None:
            yield from _kind_findings(flow, dataset)
            if dataset.kind in (DatasetKind.STREAMING_TABLE, DatasetKind.SINK, DatasetKind.TABLE):
                _record(flow, dataset, script_run.recording)
    targets = {graph.key(flow.target) for flow in graph.flows}
    for key, dataset in graph.datasets.items():
        if key not in targets and dataset.kind is not DatasetKind.SINK:
            yield build_finding(
                "MS118",
                f"{dataset.kind} '{dataset.name}' has no flow",
                dataset.span,
                why="Spark refuses a dataset that no flow writes: PIPELINE_DATASET_WITHOUT_FLOW",
                fix="give it a query, or add a flow that writes it",
            )
    if not graph.datasets and not graph.flows and not project.findings:
        yield build_finding(
            "MS115",
            "the project declares no dataset",
            severity=Severity.INFO,
            why="only the flows of datasets are checked",
        )


def _kind_findings(flow: DeclaredFlow, dataset: DeclaredDataset) -> Iterator[Finding]:
    """Yield a finding if the flow reads a stream and its dataset needs a batch query, or the reverse."""
    streaming = bool(flow.frame.isStreaming) if flow.frame is not None else False
    if isinstance(flow.frame, Unknown):
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


def _record(flow: DeclaredFlow, dataset: DeclaredDataset, recording: Recording) -> None:
    """Record a flow as a query in append mode with the available-now trigger. Spark stores its checkpoint."""
    assert flow.frame is not None
    if not isinstance(flow.frame, Unknown) and not flow.frame.isStreaming:
        return
    recording.queries.append(
        StartedQuery(
            number=len(recording.queries) + 1,
            frame=flow.frame,
            name=flow.name,
            trigger=Trigger(available_now=True),
            format=short_name(dataset.format or spark_formats.DEFAULT),
            target=dataset.name,
            options=dict(dataset.options),
            checkpoint=f"the pipeline's storage, {flow.name}",
            span=flow.span,
        )
    )


def _auto_cdc_replacement(graph: FlowGraph) -> Any:
    """Return a replacement for a function of Spark that requires Spark Connect."""

    def create_auto_cdc_flow(target: str, *_args: Any, **_kwargs: Any) -> None:
        graph.changes(target, call_sites.current_span())

    return create_auto_cdc_flow
