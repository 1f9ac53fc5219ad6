"""The graph of a pipeline with the rates of a run on it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millstream.dashboard import shapes
    from millstream.dashboard.following import Followed


@dataclass
class Drawing:
    """Nodes (`id`, `kind`, `name`, `label`, `messages`, `rows`) and edges (`from`, `to`), as the spec has them."""

    nodes: list[dict[str, Any]] = field(default_factory=list)
    edges: list[dict[str, str]] = field(default_factory=list)

    def told(self, known: Mapping[str, shapes.Query], queries: Mapping[str, Followed]) -> shapes.Graph:
        """The graph with rates: of a source what its fastest reader reads, of a sink what its query writes."""
        rates = {node["id"]: self._rate(node, known, queries) for node in self.nodes}
        nodes: list[shapes.Node] = []
        for node in self.nodes:
            readers = self.readers(node["id"])
            own = known.get(node["name"]) if node["kind"] == "query" else None
            nodes.append(
                {
                    "id": node["id"],
                    "kind": node["kind"],
                    "name": node["name"],
                    "label": node["label"],
                    "state": own["state"] if own else None,
                    "level": own["level"] if own else "ok",
                    "rate": rates[node["id"]],
                    "busy": own["busy"] if own else None,
                    "queries": readers,
                    "messages": bool(node.get("messages")),
                    "rows": bool(node.get("rows")),
                }
            )
        edges: list[shapes.Edge] = []
        for edge in self.edges:
            ends = [rates.get(edge["from"]), rates.get(edge["to"])]
            rate = ends[1] if edge["to"].startswith(("sink.", "query.")) else ends[0]
            edges.append({"from": edge["from"], "to": edge["to"], "rate": rate})
        return {"nodes": nodes, "edges": edges}

    def readers(self, node: str) -> list[str]:
        """The queries that a node belongs to: those behind it, or, of a sink, the one before it."""
        if node.startswith("sink."):
            return [node.split(".")[1]]
        found, waiting, seen = [], [node], set()
        while waiting:
            here = waiting.pop()
            if here in seen:
                continue
            seen.add(here)
            if here.startswith("query."):
                found.append(here.removeprefix("query."))
            else:
                waiting += [edge["to"] for edge in self.edges if edge["from"] == here]
        return sorted(found)

    def _rate(
        self, node: Mapping[str, Any], known: Mapping[str, shapes.Query], queries: Mapping[str, Followed]
    ) -> float | None:
        match node["kind"]:
            case "query":
                return known[node["name"]]["input_rate"] if node["name"] in known else None
            case "sink":
                query = node["id"].split(".")[1]
                return known[query]["output_rate"] if query in known else None
            case "source":
                found = [
                    one.source_rates[node["name"]]
                    for one in queries.values()
                    if node["name"] in one.source_rates and known[one.name]["input_rate"] is not None
                ]
                return max(found, default=None)
        return None
