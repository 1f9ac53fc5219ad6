"""The first event of a run's log: what the pipeline is, so that the log alone can be shown later."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream import __version__
from millstream.analysis.dataflow import Read
from millstream.connectors.sink import Sink
from millstream.connectors.source import Source
from millstream.pipeline.drawing import edges, nodes
from millstream.pipeline.graph import Graph

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millstream.analysis.dataflow import Operator
    from millstream.pipeline.model import Pipeline
    from millstream.runtime.checking import Checked

VERSION = 1


def described(pipeline: Pipeline, queries: Sequence[str], run: str) -> dict[str, Any]:
    """The figures of the event `described`: the graph, the queries that run, the alerts. Findings follow."""
    graph = Graph.of(pipeline)
    return {
        "version": VERSION,
        "run": run,
        "pipeline": pipeline.name,
        "millstream": __version__,
        "graph": {
            "nodes": [{**node, **_seen(pipeline, node)} for node in nodes(graph)],
            "edges": [{"from": start, "to": end} for start, end in edges(graph)],
        },
        "queries": [
            {
                "name": name,
                "trigger": str(pipeline.trigger(name)).removeprefix("processing_time "),
                "trigger_seconds": wait.seconds if (wait := pipeline.trigger(name).processing_time) else None,
                "sources": graph.upstream(name),
            }
            for name in queries
        ],
        "alerts": list(pipeline.alerts),
    }


def columns(pipeline: Pipeline, checked: Checked) -> dict[str, dict[str, str]]:
    """Columns with their types in Spark's DDL, of sources and sinks by their ids in the graph, as far as known."""
    found: dict[str, dict[str, str]] = {}
    for query in checked.queries:
        for one in query.walk():
            if isinstance(one, Read) and one.source in pipeline.sources:
                found[f"source.{one.source}"] = _types(one)
        given = _types(query.root)
        for number, entry in enumerate(pipeline.queries[query.name].to):
            taken = entry.sink.takes(list(given))
            found[f"sink.{query.name}.{number}"] = {name: given[name] for name in taken if name in given}
    # What a message becomes stands in the spec; the plan reads bytes.
    for name, source in pipeline.sources.items():
        if source.columns:
            found[f"source.{name}"] = dict(source.columns)
    return found


def _types(operator: Operator) -> dict[str, str]:
    return {column.name: column.type for column in operator.columns}


def _seen(pipeline: Pipeline, node: dict[str, Any]) -> dict[str, bool]:
    """Has a source messages, and a sink rows, that can be looked at without Spark?"""
    if node["kind"] == "source":
        entry = pipeline.sources[node["name"]]
        return {
            "messages": not entry.static and type(entry.source).recent is not Source.recent,
            "rows": False,
        }
    if node["kind"] == "sink":
        sink = sink_of(pipeline, node["id"])
        return {"messages": False, "rows": sink is not None and type(sink).rows is not Sink.rows}
    return {"messages": False, "rows": False}


def sink_of(pipeline: Pipeline, node: str) -> Sink | None:
    """The sink of an id in the graph, `sink.QUERY.NUMBER`; None where there is none."""
    kind, _, rest = node.partition(".")
    query, _, number = rest.rpartition(".")
    if kind != "sink" or query not in pipeline.queries or not number.isdigit():
        return None
    to = pipeline.queries[query].to
    return to[int(number)].sink if int(number) < len(to) else None
