"""Locate the operators of a plan in the spec's SQL, its Python functions and its sources."""

from __future__ import annotations

import linecache
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.checking.query_plan import SourceCall, SourcePlaces, SqlSpan
from millstream.diagnostics.finding import Span
from millstream.pipeline.spec_file import display_path

if TYPE_CHECKING:
    from millstream.pipeline.load.places import ValuePositions
    from millstream.pipeline.model import Pipeline


@dataclass(frozen=True)
class SpecPlaces(SourcePlaces):
    """Positions in a spec's file, its `views/*.sql` and its Python functions."""

    places: ValuePositions = field(kw_only=True)
    texts: dict[str, str] = field(kw_only=True)
    """The SQL of each view that is written in SQL."""
    calls: dict[str, SourceCall] = field(default_factory=dict, kw_only=True)
    """Calls of `spark.sql` in Python functions, by their SQL text."""

    @classmethod
    def of(cls, pipeline: Pipeline, places: ValuePositions) -> SpecPlaces:
        """Return the positions of a pipeline."""
        return cls(
            formats={name: entry.source.kind for name, entry in pipeline.sources.items()},
            views=frozenset(pipeline.views),
            places=places,
            texts={name: view.sql for name, view in pipeline.views.items() if view.sql is not None},
        )

    def sql(self, stretch: SqlSpan) -> Span | None:
        """Return the span of a part of a view's SQL, or of its first line if it has several."""
        for view, text in self.texts.items():
            if stretch.of(text):
                end = text.find("\n", stretch.start, stretch.stop)
                stop = end if end > stretch.start else stretch.stop
                return self.places.sql(view, stretch.start, stop)
        source_call = next((call for text, call in self.calls.items() if stretch.of(text)), None)
        return self.call(source_call) if source_call else None

    def call(self, call: SourceCall) -> Span | None:
        """Return the line of a call."""
        return python_line_span(call.file, call.line)

    def span_of_name(self, name: str) -> Span | None:
        """Return the span of a source's key, or of a view's SQL or function."""
        if name in self.formats:
            return self.places.key("sources", name)
        if name in self.texts:
            text = self.texts[name]
            first = len(text) - len(text.lstrip())
            end = text.find("\n", first)
            return self.places.sql(name, first, end if end > 0 else len(text))
        return self.places.value("views", name) if name in self.views else None

    def watermark(self, source: str) -> Span | None:
        """Return the span of a source's watermark."""
        return self.places.value("sources", source, "watermark")

    def deduplication(self, source: str) -> Span | None:
        """Return the span of the keys by which a source's duplicates are dropped."""
        return self.places.value("sources", source, "drop_duplicates_within_watermark")

    def expectation(self, source: str, name: str) -> Span | None:
        """Return the span of the condition of a source's expectation."""
        return self.places.value("sources", source, "expect", name, "that")


def python_line_span(file: str, number: int) -> Span:
    """Return the span of the text on one line of a Python file."""
    # A server and a watch check a file again after it has changed.
    linecache.checkcache(file)
    text = linecache.getline(file, number).rstrip()
    first = len(text) - len(text.lstrip()) + 1
    return Span(str(display_path(Path(file))), number, first, number, max(len(text), first) + 1)
