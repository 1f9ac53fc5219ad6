"""Describe the pipeline in the first event of a run's log, so that the log can be shown without the spec."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream import __version__
from millstream.analysis.query.plan_model import Read
from millstream.connectors.api.sink import Sink
from millstream.connectors.api.source import Source
from millstream.pipeline.export.graph_export import edges, nodes
from millstream.pipeline.graph import PipelineGraph

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millstream.analysis.query.plan_model import Operator
    from millstream.checking.check import CheckResult
    from millstream.pipeline.model import Pipeline

VERSION = 1


def describe_pipeline(pipeline: Pipeline, queries: Sequence[str], run: str) -> dict[str, Any]:
    """Return the data of the event `pipeline`: the graph, the running queries, the alerts."""
    graph = PipelineGraph.of(pipeline)
    return {
        "version": VERSION,
        "run": run,
        "pipeline": pipeline.name,
        "millstream": __version__,
        "graph": {
            "nodes": [{**node, **_previews(pipeline, node)} for node in nodes(graph)],
            "edges": [{"from": start, "to": end} for start, end in edges(graph)],
        },
        "queries": [
            {
                "name": name,
                "trigger": str(pipeline.trigger(name)).removeprefix("processing_time "),
                "trigger_seconds": pipeline.trigger(name).interval_seconds,
                "sources": graph.sources_of(name),
            }
            for name in queries
        ],
        "alerts": list(pipeline.alerts),
    }


def known_columns(pipeline: Pipeline, checked: CheckResult) -> dict[str, dict[str, str]]:
    """Return the known columns of sources and sinks, by id in the graph, with types in Spark's DDL."""
    types: dict[str, dict[str, str]] = {}
    for query in checked.queries:
        for operator in query.walk():
            if isinstance(operator, Read) and operator.source in pipeline.sources:
                types[f"source.{operator.source}"] = _types(operator)
        output_types = _types(query.root)
        for number, entry in enumerate(pipeline.queries[query.name].to):
            names = entry.sink.takes(list(output_types))
            types[f"sink.{query.name}.{number}"] = {
                name: output_types[name] for name in names if name in output_types
            }
    # The columns of messages are in the spec, because the plan reads bytes.
    for name, source in pipeline.sources.items():
        if source.columns:
            types[f"source.{name}"] = dict(source.columns)
    return types


def _types(operator: Operator) -> dict[str, str]:
    return {column.name: column.type for column in operator.columns}


def _previews(pipeline: Pipeline, node: dict[str, Any]) -> dict[str, bool]:
    """Return whether messages of a source and rows of a sink can be read without Spark."""
    if node["kind"] == "source":
        entry = pipeline.sources[node["name"]]
        return {
            "messages": not entry.static and type(entry.source).recent is not Source.recent,
            "rows": False,
        }
    if node["kind"] == "sink":
        sink = find_sink(pipeline, node["id"])
        return {"messages": False, "rows": sink is not None and type(sink).rows is not Sink.rows}
    return {"messages": False, "rows": False}


def find_sink(pipeline: Pipeline, node: str) -> Sink | None:
    """Return the sink with an id of the graph, `sink.QUERY.NUMBER`, or None if there is none."""
    kind, _, rest = node.partition(".")
    query, _, number = rest.rpartition(".")
    if kind != "sink" or query not in pipeline.queries or not number.isdigit():
        return None
    sinks = pipeline.queries[query].to
    return sinks[int(number)].sink if int(number) < len(sinks) else None
