"""What each address answers, as values: no socket is known here."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from millstream.dashboard import metrics

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millstream.dashboard.feed import Feed

STATIC = Path(__file__).with_name("static")
"""Where the built page lies."""
ABSENT = (
    "The page is not built here; docs/how-to/live-page.md says how. What it would show is at /api/state.\n"
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
class Answer:
    """A status, a body and its type; `headers` are those of this answer alone."""

    status: int
    body: bytes
    kind: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=lambda: {"Cache-Control": "no-store"})


class Looks(Protocol):
    """Looks at what lies outside the run: rows of sinks, messages of sources, dead letters."""

    def rows(self, sink: str) -> dict[str, Any] | None:
        """The latest rows of a sink by its id in the graph; None for a sink that there is not."""

    def messages(self, source: str) -> dict[str, Any] | None:
        """Recent messages of a source; None for a source that there is not."""

    def letters(self) -> dict[str, Any]:
        """`latest` and `note`."""


def as_json(value: Any, status: int = 200) -> Answer:
    """A value as JSON."""
    return Answer(status, (json.dumps(value, default=str, ensure_ascii=False) + "\n").encode())


def wrong(status: int, error: str, fix: str) -> Answer:
    """An error in the one shape that errors have."""
    return as_json({"error": error, "fix": fix}, status)


@dataclass(frozen=True)
class Answers:
    """Answers to everything but `/api/events`."""

    feed: Feed
    looks: Looks
    static: Path = STATIC

    def get(self, path: str, asked: Mapping[str, str]) -> Answer:
        """The answer to a path and its parameters."""
        match path:
            case "/api/state":
                return as_json(self.feed.document())
            case "/api/series":
                return self._series(asked)
            case "/api/rows":
                return self._looked(self.looks.rows(asked.get("sink", "")), "sink", asked.get("sink"))
            case "/api/messages":
                return self._looked(
                    self.looks.messages(asked.get("source", "")), "source", asked.get("source")
                )
            case "/api/letters":
                return as_json({**self.feed.document()["letters"], **self.looks.letters()})
            case "/api/findings":
                state = self.feed.document()
                return as_json(
                    {
                        "findings": state["findings"],
                        "guarantees": state["guarantees"],
                        "plans": state["plans"],
                    }
                )
            case "/metrics":
                told = metrics.text(
                    self.feed.document(),
                    self.feed.counts,
                    self.feed.dropped,
                    self.feed.outward,
                    self.feed.engine_figures(),
                )
                return Answer(200, told.encode(), metrics.CONTENT)
            case "/healthz":
                return as_json({"alive": True})
            case "/readyz":
                return self._ready()
        return self._file(path)

    def _series(self, asked: Mapping[str, str]) -> Answer:
        try:
            minutes = float(asked.get("minutes", "60"))
        except ValueError:
            minutes = 0.0
        if not 0 < minutes <= MINUTES:
            return wrong(400, "'minutes' is not a number of minutes", f"give one above 0, at most {MINUTES}")
        return self._looked(self.feed.series(asked.get("query", ""), minutes), "query", asked.get("query"))

    def _looked(self, found: dict[str, Any] | None, what: str, name: str | None) -> Answer:
        if found is None:
            return wrong(
                404, f"there is no {what} '{(name or '')[:80]}'", "/api/state has those that there are"
            )
        return as_json(found)

    def _ready(self) -> Answer:
        state = self.feed.document()
        worst = state["worst"]
        begun = any(query["batch"] is not None or query["state"] != "starting" for query in state["queries"])
        bad = worst is None or worst["state"] in ("failed", "stalled", "retrying") or not begun
        ready = not bad and state["run"]["ended"] is None
        return as_json({"ready": ready, "worst": worst}, 200 if ready else 503)

    def _file(self, path: str) -> Answer:
        """A file of the built page; nothing beside its folder."""
        root = self.static.resolve()
        wanted = (root / path.lstrip("/")).resolve() if "\0" not in path else root
        file = root / "index.html" if path == "/" else wanted
        if path == "/" and not file.is_file():
            return Answer(200, ABSENT.encode(), _TYPES[".txt"])
        if not file.is_relative_to(root) or not file.is_file() or file.suffix not in _TYPES:
            return wrong(404, "there is nothing here", "open /")
        kept = "max-age=31536000, immutable" if path.startswith("/assets/") else "no-store"
        return Answer(200, file.read_bytes(), _TYPES[file.suffix], {"Cache-Control": kept})
