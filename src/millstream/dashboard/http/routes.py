"""Compute the response of each path, without access to a socket."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from millstream.dashboard.export import prometheus
from millstream.diagnostics.failure import MillstreamError
from millstream.spec.secrets.redaction import redact

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millstream.dashboard.http.event_stream import EventStream

STATIC = Path(__file__).parents[1] / "static"
"""The folder of the built page."""
ABSENT = (
    "The page is not built; docs/how-to/live-page.md explains how to build it. Its data is at /api/state.\n"
)
MINUTES = 1440
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".json": "application/json",
    ".map": "application/json",
    ".woff2": "font/woff2",
    ".txt": "text/plain; charset=utf-8",
}


@dataclass(frozen=True)
class Response:
    """A status, a body and its type. `headers` are only those that differ between responses."""

    status: int
    body: bytes
    kind: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=lambda: {"Cache-Control": "no-store"})


class PreviewReader(Protocol):
    """Previews of data: rows of sinks, messages of sources, dead letters, state of queries."""

    def rows(self, sink: str) -> dict[str, Any] | None:
        """Return the latest rows of a sink by its id in the graph, or None if there is no such sink."""

    def messages(self, source: str) -> dict[str, Any] | None:
        """Return recent messages of a source, or None if there is no such source."""

    def letters(self) -> dict[str, Any]:
        """Return `latest` dead letters and a `note`."""

    def state(self, query: str, keys: int | None, /) -> dict[str, Any] | None:
        """Return `stores` of a query's state, which has so many keys, or None if there is no such query."""


def json_response(value: Any, status: int = 200) -> Response:
    """Return a value as a JSON response."""
    return Response(status, (json.dumps(value, default=str, ensure_ascii=False) + "\n").encode())


def error_response(status: int, error: str, fix: str) -> Response:
    """Return an error response."""
    return json_response({"error": error, "fix": fix}, status)


@dataclass(frozen=True)
class Routes:
    """Responses to all paths except `/api/events`."""

    feed: EventStream
    looks: PreviewReader
    static: Path = STATIC

    def get(self, path: str, parameters: Mapping[str, str]) -> Response:
        """Return the response to a path and its parameters."""
        match path:
            case "/api/state":
                return json_response(self.feed.document())
            case "/api/series":
                return self._series(parameters)
            case "/api/partitions":
                query = parameters.get("query", "")
                return self._looked(self.feed.partitions(query), "query", query)
            case "/api/rows":
                return self._looked(
                    self.looks.rows(parameters.get("sink", "")), "sink", parameters.get("sink")
                )
            case "/api/messages":
                return self._looked(
                    self.looks.messages(parameters.get("source", "")), "source", parameters.get("source")
                )
            case "/api/letters":
                return json_response({**self.feed.document()["letters"], **self.looks.letters()})
            case "/api/statestore":
                return self._state(parameters.get("query", ""))
            case "/api/findings":
                state = self.feed.document()
                return json_response(
                    {
                        "findings": state["findings"],
                        "guarantees": state["guarantees"],
                        "plans": state["plans"],
                    }
                )
            case "/metrics":
                metrics = prometheus.format_metrics(
                    self.feed.document(),
                    self.feed.partitions,
                    self.feed.counts,
                    self.feed.dropped,
                    self.feed.outward,
                    self.feed.engine_figures(),
                )
                return Response(200, metrics.encode(), prometheus.CONTENT)
            case "/healthz":
                return json_response({"alive": True})
            case "/readyz":
                return self._ready()
        return self._file(path)

    def _state(self, query: str) -> Response:
        sizes = {item["name"]: item["state_rows"] for item in self.feed.document()["queries"]}
        return self._looked(self.looks.state(query, sizes.get(query)), "query", query)

    def act(self, name: str, parameters: Mapping[str, str]) -> Response:
        """Carry out an action of the page, and return what happens."""
        if self.feed.actions is None or name not in self.feed.document()["actions"]:
            return error_response(404, f"there is no action '{name[:40]}'", "/api/state lists the actions")
        try:
            return json_response({"done": self.feed.actions.run(name, parameters)})
        except MillstreamError as error:
            return error_response(409, redact(error.what), redact(error.fix))

    def public(self, path: str) -> Response | None:
        """Return the response to a path that any local user may read (no rows, messages or errors), else None."""
        match path:
            case "/metrics" | "/healthz":
                return self.get(path, {})
            case "/readyz":
                ready = self._ready()
                return json_response({"ready": ready.status == 200}, ready.status)
        return None

    def _series(self, parameters: Mapping[str, str]) -> Response:
        try:
            minutes = float(parameters.get("minutes", "60"))
        except ValueError:
            minutes = 0.0
        if not 0 < minutes <= MINUTES:
            return error_response(
                400,
                "'minutes' is not a valid number of minutes",
                f"use a number above 0 and at most {MINUTES}",
            )
        return self._looked(
            self.feed.series(parameters.get("query", ""), minutes), "query", parameters.get("query")
        )

    def _looked(self, result: Any | None, noun: str, name: str | None) -> Response:
        if result is None:
            return error_response(
                404, f"there is no {noun} '{(name or '')[:80]}'", "/api/state lists the existing ones"
            )
        return json_response(result)

    def _ready(self) -> Response:
        state = self.feed.document()
        worst = state["worst"]
        has_started = any(
            query["batch"] is not None or query["state"] != "starting" for query in state["queries"]
        )
        is_unhealthy = worst is None or worst["state"] in ("failed", "stalled", "retrying") or not has_started
        ready = not is_unhealthy and state["run"]["ended"] is None
        return json_response({"ready": ready, "worst": worst}, 200 if ready else 503)

    def _file(self, path: str) -> Response:
        """Return a file of the built page, and nothing outside its folder."""
        root = self.static.resolve()
        requested = (root / path.lstrip("/")).resolve() if "\0" not in path else root
        file = root / "index.html" if path == "/" else requested
        if path == "/" and not file.is_file():
            return Response(200, ABSENT.encode(), _TYPES[".txt"])
        if not file.is_relative_to(root) or not file.is_file() or file.suffix not in _TYPES:
            return error_response(404, "no such page", "open /")
        caching = "max-age=31536000, immutable" if path.startswith("/assets/") else "no-store"
        return Response(200, file.read_bytes(), _TYPES[file.suffix], {"Cache-Control": caching})
