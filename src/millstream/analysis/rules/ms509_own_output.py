"""A table that is listed once at the start, though a query of the pipeline goes on writing it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.facts import Code, Facts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


def check(facts: Facts) -> Iterator[Finding]:
    """Static sources of kinds that do not look again."""
    written = {
        place: (query, entry.sink.describe())
        for query, _, entry in facts.sinks()
        for place in entry.sink.writes_to()
    }
    for name, entry in facts.pipeline.sources.items():
        if not entry.static or entry.source.reread:
            continue
        for place in sorted(entry.source.reads_from() & set(written)):
            writer = written[place][0]
            yield CODE.warning(
                f"static source '{name}' is read once, and query '{writer}' goes on writing it",
                facts.places.value("sources", name, "source"),
                why="its files are listed when the run starts: rows that are written later are never seen",
                fix="write and read a Delta table, which each batch reads as it then stands, or read it as a stream",
                query=next(iter(facts.readers(name)), None),
            )
