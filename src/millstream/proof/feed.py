"""The input of a proof: cut into portions that are fed while the pipeline runs, and rows that close its windows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from millstream.proof.rows import Maker, drawn, unique_columns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millstream.connectors.elsewhere import Fed
    from millstream.pipeline.model import Pipeline


class Recorded(Protocol):
    """Input that was declared beside the spec: records by topic, in the order of their sending."""

    def topics(self) -> frozenset[str]:
        """The topics that it has records of."""

    def portion(self, begin: float, end: float) -> dict[str, list[Fed]]:
        """Records by topic that are sent in these seconds after the beginning."""


class Feed:
    """Portions for the sources of a moved pipeline. `originals` are the sources under their own names."""

    def __init__(
        self,
        pipeline: Pipeline,
        originals: Pipeline,
        fed: Sequence[str],
        *,
        portions: int,
        rows: int,
        seed: int,
        recorded: Recorded | None,
    ) -> None:
        keys = frozenset(
            key for query in pipeline.queries.values() for entry in query.to for key in entry.sink.row_key
        )
        self.pipeline = pipeline
        self.recorded = recorded
        self.makers = {
            name: Maker(name, entry, unique_columns(entry, keys), seed)
            for name in fed
            for entry in (pipeline.sources[name],)
        }
        self.topics: dict[str, dict[str, str]] = {}
        for name in fed:
            known = sorted(recorded.topics()) if recorded else []
            source = originals.sources[name].source
            if taken := [topic for topic in known if source.takes_from(topic)]:
                self.topics[name] = {topic: moved_topic(pipeline, name, topic) for topic in taken}
        self.portions = portions
        # A portion spans a quarter of the shortest delay: whatever is read together stays inside the watermark.
        self.seconds = min([maker.delay for maker in self.makers.values()], default=60.0) / 4
        drawn = [name for name in fed if name not in self.topics]
        self.each = max(1, rows // portions // max(1, len(drawn)))
        self.done = 0
        self.rows = 0

    @property
    def left(self) -> int:
        """Portions that are not fed yet."""
        return self.portions - self.done

    def next(self) -> None:
        """Feed one portion to every source."""
        begin = self.done * self.seconds
        told = self.recorded.portion(begin, begin + self.seconds) if self.recorded else {}
        for name, maker in self.makers.items():
            if name in self.topics:
                records = [
                    type(record)(record.value, record.key, topic)
                    for original, topic in self.topics[name].items()
                    for record in told.get(original, ())
                ]
            else:
                records = maker.portion(self.each, begin, self.seconds)
            self._give(name, records)
        self.done += 1

    def extra(self) -> None:
        """Feed one portion more than was planned, and leave the planned ones for later."""
        self.portions += 1
        self.next()

    def close(self, minute: int) -> None:
        """Feed the rows that close all windows."""
        for name, maker in self.makers.items():
            self._give(name, maker.last(minute), self.portions + minute)

    def _give(self, name: str, records: list[Fed], number: int | None = None) -> None:
        if records:
            entry, portion = self.pipeline.sources[name], self.done if number is None else number
            entry.source.feed(records, portion, drawn(entry))
            self.rows += len(records)


def moved_topic(pipeline: Pipeline, source: str, topic: str) -> str:
    """The name under which a source of the copy reads that topic."""
    names = [need.name for need in pipeline.sources[source].source.needs()]
    return next((name for name in names if name.endswith(f".{topic}")), "")
