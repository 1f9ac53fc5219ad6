"""Places of a spec's plans: SQL in its views, calls in its Python functions, sources by name."""

from __future__ import annotations

import linecache
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.diagnostics.finding import Span
from millstream.pipeline.load import shown
from millstream.runtime.planning import Call, Stretch, Where

if TYPE_CHECKING:
    from millstream.pipeline.model import Pipeline
    from millstream.pipeline.places import Places


@dataclass(frozen=True)
class SpecPlaces(Where):
    """Places in a spec's file, its `views/*.sql` and its Python functions."""

    places: Places = field(kw_only=True)
    texts: dict[str, str] = field(kw_only=True)
    """The SQL of each view that has some."""
    calls: dict[str, Call] = field(default_factory=dict, kw_only=True)
    """Calls by the SQL that a function gave to Spark."""

    @classmethod
    def of(cls, pipeline: Pipeline, places: Places) -> SpecPlaces:
        """The places of a pipeline."""
        return cls(
            formats={name: entry.source.kind for name, entry in pipeline.sources.items()},
            views=frozenset(pipeline.views),
            places=places,
            texts={name: view.sql for name, view in pipeline.views.items() if view.sql is not None},
        )

    def sql(self, stretch: Stretch) -> Span | None:
        """A stretch of a view's SQL; of one over several lines the first."""
        for view, text in self.texts.items():
            if stretch.of(text):
                end = text.find("\n", stretch.start, stretch.stop)
                stop = end if end > stretch.start else stretch.stop
                return self.places.sql(view, stretch.start, stop)
        given = next((call for text, call in self.calls.items() if stretch.of(text)), None)
        return self.call(given) if given else None

    def call(self, call: Call) -> Span | None:
        """The line of a call."""
        return line(call.file, call.line)

    def named(self, name: str) -> Span | None:
        """A source by its key, a view by its SQL or function."""
        if name in self.formats:
            return self.places.key("sources", name)
        if name in self.texts:
            text = self.texts[name]
            first = len(text) - len(text.lstrip())
            end = text.find("\n", first)
            return self.places.sql(name, first, end if end > 0 else len(text))
        return self.places.value("views", name) if name in self.views else None

    def watermark(self, source: str) -> Span | None:
        """A source's watermark."""
        return self.places.value("sources", source, "watermark")

    def deduplication(self, source: str) -> Span | None:
        """The keys that a source's repeated deliveries are told by."""
        return self.places.value("sources", source, "drop_duplicates_within_watermark")


def line(file: str, number: int) -> Span:
    """What is written on one line of a Python file."""
    text = linecache.getline(file, number).rstrip()
    first = len(text) - len(text.lstrip()) + 1
    return Span(str(shown(Path(file))), number, first, number, max(len(text), first) + 1)
