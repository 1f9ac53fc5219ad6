"""Add the rates of a run to the graph of its pipeline."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millstream.dashboard.state import api_schema
    from millstream.dashboard.state.query_state import QueryState


@dataclass
class Drawing:
    """Nodes (`id`, `kind`, `name`, `label`, `messages`, `rows`) and edges (`from`, `to`) of the spec."""

    nodes: list[dict[str, Any]] = field(default_factory=list)
    edges: list[dict[str, str]] = field(default_factory=list)

    def as_json(
        self, known: Mapping[str, api_schema.QueryDetails], queries: Mapping[str, QueryState], now: float
    ) -> api_schema.Graph:
        """Return the graph with rates. A source has the rate of its fastest reader, a sink that of its query."""
        rates = {node["id"]: self._rate(node, known, queries, now) for node in self.nodes}
        nodes: list[api_schema.Node] = []
        for node in self.nodes:
            readers = self.readers(node["id"])
            query = known.get(node["name"]) if node["kind"] == "query" else None
            nodes.append(
                {
                    "id": node["id"],
                    "kind": node["kind"],
                    "name": node["name"],
                    "label": node["label"],
                    "state": query["state"] if query else None,
                    "level": query["level"] if query else "ok",
                    "rate": rates[node["id"]],
                    "arrival_rate": _arrival_rate(node, queries, now),
                    "busy": query["busy"] if query else None,
                    "queries": readers,
                    "messages": bool(node.get("messages")),
                    "rows": bool(node.get("rows")),
                }
            )
        edges: list[api_schema.Edge] = []
        for edge in self.edges:
            ends = [rates.get(edge["from"]), rates.get(edge["to"])]
            rate = ends[1] if edge["to"].startswith(("sink.", "query.")) else ends[0]
            edges.append({"from": edge["from"], "to": edge["to"], "rate": rate})
        return {"nodes": nodes, "edges": edges}

    def readers(self, node: str) -> list[str]:
        """Return the queries that read a node, directly or indirectly; for a sink, the query that writes it."""
        if node.startswith("sink."):
            return [node.split(".")[1]]
        query_names, pending, visited = [], [node], set()
        while pending:
            current = pending.pop()
            if current in visited:
                continue
            visited.add(current)
            if current.startswith("query."):
                query_names.append(current.removeprefix("query."))
            else:
                pending += [edge["to"] for edge in self.edges if edge["from"] == current]
        return sorted(query_names)

    def _rate(
        self,
        node: Mapping[str, Any],
        details: Mapping[str, api_schema.QueryDetails],
        queries: Mapping[str, QueryState],
        now: float,
    ) -> float | None:
        match node["kind"]:
            case "query":
                return details[node["name"]]["input_rate"] if node["name"] in details else None
            case "sink":
                query = node["id"].split(".")[1]
                return details[query]["output_rate"] if query in details else None
            case "source":
                source_rates = [
                    reader.source_rates[node["name"]]
                    for reader in queries.values()
                    if node["name"] in reader.source_rates
                    and details[reader.name]["input_rate"] is not None
                    and not reader.is_inactive(now)
                ]
                return max(source_rates, default=None)
        return None


def _arrival_rate(node: Mapping[str, Any], queries: Mapping[str, QueryState], now: float) -> float | None:
    """Return how fast the topics of a source grow, which all its readers see alike; None for other nodes."""
    if node["kind"] != "source":
        return None
    rates = (query.arrival_rate(node["name"], now) for query in queries.values())
    return max((rate for rate in rates if rate is not None), default=None)
