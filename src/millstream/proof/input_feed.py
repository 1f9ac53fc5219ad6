"""The input of a proof, fed in portions while the pipeline runs, and final rows that close its windows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from millstream.connectors.api.csv_text import UnwritableText
from millstream.proof.rows import RowGenerator, generated_columns, unique_columns, unwritable_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millstream.connectors.api.values.sandbox import InputRecord
    from millstream.pipeline.model import Pipeline


class DeclaredInput(Protocol):
    """Input declared next to the spec: records by topic, in the order in which they are sent."""

    def topics(self) -> frozenset[str]:
        """Return the topics that have records."""

    def portion(self, begin: float, end: float) -> dict[str, list[InputRecord]]:
        """Return the records by topic that are sent in this interval, in seconds after the start."""


class InputFeed:
    """Feeds portions to the sources of a copied pipeline. `originals` is the original pipeline."""

    def __init__(
        self,
        pipeline: Pipeline,
        originals: Pipeline,
        fed_sources: Sequence[str],
        *,
        portions: int,
        rows: int,
        seed: int,
        recorded: DeclaredInput | None,
    ) -> None:
        keys = frozenset(
            key for query in pipeline.queries.values() for entry in query.to for key in entry.sink.row_key
        )
        self.pipeline = pipeline
        self.recorded = recorded
        self.makers = {
            name: RowGenerator(name, entry, unique_columns(entry, keys), seed)
            for name in fed_sources
            for entry in (pipeline.sources[name],)
        }
        self.topics: dict[str, dict[str, str]] = {}
        for name in fed_sources:
            known_topics = sorted(recorded.topics()) if recorded else []
            source = originals.sources[name].source
            if topics := [topic for topic in known_topics if source.reads_topic(topic)]:
                self.topics[name] = {topic: moved_topic(pipeline, name, topic) for topic in topics}
        self.portions = portions
        # A portion spans a quarter of the shortest delay, so that rows read together stay within the watermark.
        self.seconds = min([maker.delay for maker in self.makers.values()], default=60.0) / 4
        drawn = [name for name in fed_sources if name not in self.topics]
        self.each = max(1, rows // portions // max(1, len(drawn)))
        self.portions_fed = 0
        self.rows = 0

    @property
    def portions_left(self) -> int:
        """The number of portions that are not fed yet."""
        return self.portions - self.portions_fed

    def next(self) -> None:
        """Feed one portion to every source."""
        begin = self.portions_fed * self.seconds
        recorded = self.recorded.portion(begin, begin + self.seconds) if self.recorded else {}
        for name, maker in self.makers.items():
            if name in self.topics:
                records = [
                    type(record)(record.value, record.key, topic)
                    for original, topic in self.topics[name].items()
                    for record in recorded.get(original, ())
                ]
            else:
                records = maker.portion(self.each, begin, self.seconds)
            self._feed(name, records)
        self.portions_fed += 1

    def extra(self) -> None:
        """Feed an additional portion, and keep the planned ones for later."""
        self.portions += 1
        self.next()

    def close(self, minute: int) -> None:
        """Feed the rows that close all windows."""
        for name, maker in self.makers.items():
            self._feed(name, maker.last(minute), self.portions + minute)

    def _feed(self, name: str, records: list[InputRecord], number: int | None = None) -> None:
        if records:
            entry, portion = self.pipeline.sources[name], self.portions_fed if number is None else number
            try:
                entry.source.feed(records, portion, generated_columns(entry))
            except UnwritableText as error:
                raise unwritable_rows(name, error) from error
            self.rows += len(records)


def moved_topic(pipeline: Pipeline, source: str, topic: str) -> str:
    """Return the name under which a source of the copy reads a topic."""
    names = [resource.name for resource in pipeline.sources[source].source.needs()]
    return next((name for name in names if name.endswith(f".{topic}")), "")
