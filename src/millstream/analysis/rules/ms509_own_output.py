"""A static source lists its files once, although a query of the pipeline keeps writing new files to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.rule_context import Code, Facts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


def check(facts: Facts) -> Iterator[Finding]:
    """Check static sources whose connector does not read them again in each batch."""
    writers = {
        place: (query, entry.sink.describe())
        for query, _, entry in facts.sinks()
        for place in entry.sink.writes_to()
    }
    for name, entry in facts.pipeline.sources.items():
        if not entry.static or entry.source.is_reread_each_batch:
            continue
        for place in sorted(entry.source.reads_from() & set(writers)):
            writer = writers[place][0]
            yield CODE.warning(
                f"static source '{name}' lists its files only once, but query '{writer}' keeps writing new ones",
                facts.places.value("sources", name, "source"),
                why="Spark lists the files when the run starts, so rows that are written later are never read",
                fix="use a Delta table, whose current version each batch reads, or read the files as a stream",
                query=next(iter(facts.readers(name)), None),
            )
