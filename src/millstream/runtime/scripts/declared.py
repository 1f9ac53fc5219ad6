"""Check a declarative-pipelines project: its files register flows, and each flow is judged like a query."""

from __future__ import annotations

import os
import sys
import types
from typing import TYPE_CHECKING, Any

from pyspark import pipelines
from pyspark.pipelines.graph_element_registry import graph_element_registration_context
from pyspark.sql import DataFrame

from millstream.diagnostics.catalogue import finding
from millstream.diagnostics.finding import Severity
from millstream.runtime.scripts import calls
from millstream.runtime.scripts.formats import short
from millstream.runtime.scripts.graph import Graph, Kind
from millstream.runtime.scripts.house import Waits, as_python_runs, time_limit
from millstream.runtime.scripts.judge import judged
from millstream.runtime.scripts.patches import Patches
from millstream.runtime.scripts.project import load
from millstream.runtime.scripts.record import Recording, Started
from millstream.runtime.scripts.script import PATIENCE, Ran, intercepted, told
from millstream.runtime.scripts.sqlfile import SqlFile
from millstream.runtime.scripts.unknown import Unknown
from millstream.spec.trigger import Trigger

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from millstream.diagnostics.finding import Finding
    from millstream.runtime.checking import Checked
    from millstream.runtime.scripts.graph import Dataset, Written
    from millstream.runtime.scripts.project import Project
    from millstream.runtime.scripts.script import Inside


def check_project(spark: SparkSession, spec: Path) -> Checked:
    """Check a Spark declarative-pipelines project by its `spark-pipeline.yml`.

    Its Python files run in this process, and the functions of its flows are called once each. Nothing is connected
    to and nothing is written. Never raises for what stands in the project.
    """
    project = load(spec)
    recording = Recording()
    ran = Ran(recording, endless=True, script=False)
    findings = list(project.findings)
    if not any(found.code == "MS001" for found in findings):
        calls.begin()
        with intercepted(spark, recording) as inside, as_python_runs(spec, []), Patches() as patches:
            ran.texts = inside.statements.texts
            graph = Graph(project, inside.reading)
            inside.reading.own = lambda session, name, streaming: graph.read(
                session, name, streaming=streaming
            )
            patches.set(pipelines, "create_auto_cdc_flow", _changes(graph))
            for key, value in project.configuration.items():
                inside.session.conf.set(key, value)
            findings += _registered(project, graph, inside)
            findings += _made(project, graph, ran)
            findings += graph.findings
    return judged(ran, project.file, findings)


def _registered(project: Project, graph: Graph, inside: Inside) -> Iterator[Finding]:
    """Load the project's files; what one of them raises does not keep the others from being loaded."""
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
                    exec(compile(file.read_bytes(), str(file), "exec"), vars(module))  # noqa: S102 - it is asked for
            except Waits:
                yield finding("MS114", "the file does not end", calls.line_span(str(file), 1))
            except (Exception, SystemExit) as wrong:  # noqa: BLE001 - a user's file may raise anything
                raised = told(wrong, file, inside.statements.texts)
                yield finding(
                    "MS114", f"the file ends here: {raised.what}", raised.span, why=raised.why, fix=raised.fix
                )


def _made(project: Project, graph: Graph, ran: Ran) -> Iterator[Finding]:
    """Make every flow, and record those that are streams."""
    for flow in graph.flows:
        dataset = graph.datasets.get(graph.key(flow.target))
        if dataset is None:
            fix = f"declare it: create_streaming_table('{flow.target}'), or CREATE STREAMING TABLE {flow.target}"
            said = f"flow '{flow.name}' writes '{flow.target}', which nothing declares"
            yield finding("MS118", said, flow.span, fix=fix, query=flow.name)
            continue
        graph.make(flow)
        if flow.failed is not None:
            raised = told(flow.failed, project.folder, ran.texts, flow.text)
            yield finding(
                "MS118",
                f"flow '{flow.name}': {raised.what.removeprefix('RecursionError: ').removeprefix('TypeError: ')}",
                raised.span or flow.span,
                why=raised.why,
                fix=raised.fix,
                query=flow.name,
            )
        elif flow.frame is not None:
            yield from _fitting(flow, dataset)
            if dataset.kind in (Kind.STREAMING_TABLE, Kind.SINK):
                _record(flow, dataset, ran.recording)
    written = {graph.key(flow.target) for flow in graph.flows}
    for key, dataset in graph.datasets.items():
        if key not in written and dataset.kind is not Kind.SINK:
            yield finding(
                "MS118",
                f"{dataset.kind} '{dataset.name}' has no flow",
                dataset.span,
                why="Spark refuses a dataset that nothing writes: PIPELINE_DATASET_WITHOUT_FLOW",
                fix="give it a query, or add a flow that writes it",
            )
    if not graph.datasets and not graph.flows and not project.findings:
        yield finding(
            "MS115", "the project declares no dataset", severity=Severity.INFO, why="a check judges its flows"
        )


def _fitting(flow: Written, dataset: Dataset) -> Iterator[Finding]:
    """Is the flow's query of the kind that its dataset takes?"""
    streaming = bool(flow.frame.isStreaming) if flow.frame is not None else False
    if isinstance(flow.frame, Unknown):
        return
    if dataset.kind in (Kind.STREAMING_TABLE, Kind.SINK) and not streaming:
        yield finding(
            "MS118",
            f"flow '{flow.name}' of {dataset.kind} '{dataset.name}' reads no stream",
            flow.span,
            why="Spark refuses it: INVALID_FLOW_QUERY_TYPE.BATCH_RELATION_FOR_STREAMING_TABLE",
            fix="read a source as a stream: STREAM name in SQL, spark.readStream in Python; or make it a"
            " materialized view",
            query=flow.name,
        )
    if dataset.kind is Kind.MATERIALIZED_VIEW and streaming:
        yield finding(
            "MS118",
            f"flow '{flow.name}' of materialized view '{dataset.name}' reads a stream",
            flow.span,
            why="Spark refuses it: INVALID_FLOW_QUERY_TYPE.STREAMING_RELATION_FOR_MATERIALIZED_VIEW",
            fix="read its sources as tables, or make it a streaming table",
            query=flow.name,
        )


def _record(flow: Written, dataset: Dataset, recording: Recording) -> None:
    """A flow is a query in append mode that reads what there is; Spark keeps its checkpoint."""
    assert flow.frame is not None
    if isinstance(flow.frame, DataFrame) and not flow.frame.isStreaming:
        return
    recording.queries.append(
        Started(
            number=len(recording.queries) + 1,
            frame=flow.frame,
            name=flow.name,
            trigger=Trigger(available_now=True),
            format=short(dataset.format or "parquet"),
            target=dataset.name,
            options=dict(dataset.options),
            checkpoint=f"the pipeline's storage, {flow.name}",
            span=flow.span,
        )
    )


def _changes(graph: Graph) -> Any:
    """Stands for a function of Spark's that needs Spark Connect to be installed."""

    def create_auto_cdc_flow(target: str, *_args: Any, **_named: Any) -> None:
        graph.changes(target, calls.here())

    return create_auto_cdc_flow
