"""Export the graph of a pipeline as text, as a Mermaid or Graphviz diagram, and as JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.pipeline.graph import PipelineGraph

Edge = tuple[str, str]


def nodes(graph: PipelineGraph) -> Iterator[dict[str, Any]]:
    """Yield sources, views, queries and sinks: `id`, `kind` (which of the four), `name` and `label`."""
    pipeline = graph.pipeline
    for name, entry in pipeline.sources.items():
        description = entry.source.describe() + (" (static)" if entry.static else "")
        yield {"id": f"source.{name}", "kind": "source", "name": name, "label": _short(graph, description)}
    for name, view in pipeline.views.items():
        label_text = view.hook[0] if view.hook else "sql"
        yield {"id": f"view.{name}", "kind": "view", "name": name, "label": label_text}
    for name, query in pipeline.queries.items():
        label = f"{query.output_mode}, {pipeline.trigger(name)}"
        yield {"id": f"query.{name}", "kind": "query", "name": name, "label": label}
        for number, to in enumerate(query.to):
            description = _short(graph, to.sink.describe())
            yield {"id": f"sink.{name}.{number}", "kind": "sink", "name": description, "label": description}


def edges(graph: PipelineGraph) -> Iterator[Edge]:
    """Yield pairs of ids, from each node that is read to its reader."""
    for view, names in graph.reads.items():
        for name in names:
            yield _id(graph, name), f"view.{view}"
    for query, entry in graph.pipeline.queries.items():
        if query in graph.writes:
            yield _id(graph, graph.writes[query]), f"query.{query}"
        for number in range(len(entry.to)):
            yield f"query.{query}", f"sink.{query}.{number}"


def graph_as_text(graph: PipelineGraph) -> str:
    """Return a text with each query, its sinks, and below them the sources and views that it reads."""
    out: list[str] = [graph.pipeline.name]
    for name in graph.pipeline.queries:
        out += ["", *query_lines(graph, name)]
    unused = [name for name in (*graph.pipeline.sources, *graph.pipeline.views) if name not in graph.used()]
    return "\n".join([*out, *(["", f"read by no query: {', '.join(unused)}"] if unused else [])]) + "\n"


def query_lines(graph: PipelineGraph, name: str) -> list[str]:
    """Return the lines of one query."""
    query = graph.pipeline.queries[name]
    trigger = graph.pipeline.trigger(name)
    when = f"every {trigger.processing_time}" if trigger.processing_time else str(trigger)
    out = [f"query {name} ({query.output_mode}, {when})"]
    out += [f"  to   {_short(graph, to.sink.describe())}" for to in query.to]
    return out + _tree(graph, graph.writes.get(name, ""), 1, ())


def _tree(graph: PipelineGraph, name: str, depth: int, above: tuple[str, ...]) -> list[str]:
    pad = "  " * depth
    if name in graph.pipeline.sources:
        entry = graph.pipeline.sources[name]
        late = f", {entry.watermark.delay_threshold} late" if entry.watermark else ""
        kind = "static" if entry.static else "source"
        return [f"{pad}from {kind} {name}: {_short(graph, entry.source.describe())}{late}"]
    if name not in graph.pipeline.views or name in above:
        return []
    inner = [line for other in graph.reads[name] for line in _tree(graph, other, depth + 1, (*above, name))]
    return [f"{pad}from view {name}", *inner]


_SHAPES = {"source": ("[(", ")]"), "view": ("[", "]"), "query": ("([", "])"), "sink": ("[/", "/]")}


def graph_as_mermaid(graph: PipelineGraph) -> str:
    """Return a Mermaid flowchart, from left to right."""
    ids = {node["id"]: f"n{number}" for number, node in enumerate(nodes(graph))}
    out = ["flowchart LR"]
    for node in nodes(graph):
        left, right = _SHAPES[node["kind"]]
        out.append(f'  {ids[node["id"]]}{left}"{_title(node, "<br/>").replace(chr(34), "#quot;")}"{right}')
    out += [f"  {ids[start]} --> {ids[end]}" for start, end in edges(graph)]
    return "\n".join(out) + "\n"


def graph_as_dot(graph: PipelineGraph) -> str:
    """Return a Graphviz digraph, from left to right."""
    shapes = {"source": "cylinder", "view": "box", "query": "oval", "sink": "note"}
    out = [f"digraph {json.dumps(graph.pipeline.name)} {{", "  rankdir=LR;"]
    for node in nodes(graph):
        title = json.dumps(_title(node, "\n"), ensure_ascii=False)
        out.append(f"  {json.dumps(node['id'])} [shape={shapes[node['kind']]}, label={title}];")
    out += [f"  {json.dumps(start)} -> {json.dumps(end)};" for start, end in edges(graph)]
    return "\n".join([*out, "}"]) + "\n"


def graph_as_json(graph: PipelineGraph) -> str:
    """Return JSON: `{"name", "nodes": [{"id", "kind", "name", "label"}], "edges": [{"from", "to"}]}`."""
    arrows = [{"from": start, "to": end} for start, end in edges(graph)]
    graph_data = {"name": graph.pipeline.name, "nodes": list(nodes(graph)), "edges": arrows}
    return json.dumps(graph_data, indent=2, ensure_ascii=False) + "\n"


def _id(graph: PipelineGraph, name: str) -> str:
    return f"view.{name}" if name in graph.pipeline.views else f"source.{name}"


def _title(node: dict[str, Any], line_end: str) -> str:
    return str(node["name"]) if node["kind"] == "sink" else f"{node['name']}{line_end}{node['label']}"


def _short(graph: PipelineGraph, description: str) -> str:
    """Shorten paths to be relative to the spec's folder."""
    return description.replace(f"{graph.pipeline.folder}/", "")
