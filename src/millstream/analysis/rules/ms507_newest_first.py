"""A source is read newest first, with a watermark that drops the older records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.rule_context import Code, Facts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


def check(facts: Facts) -> Iterator[Finding]:
    """Check sources with a watermark."""
    for name, entry in facts.pipeline.sources.items():
        if entry.static or entry.watermark is None or not entry.source.may_read_newest_first():
            continue
        delay = entry.watermark.delay_threshold
        yield CODE.warning(
            f"source '{name}' is read newest first, and its watermark drops the older rows that follow",
            facts.places.key("sources", name, "watermark"),
            why=f"after the first batch, every row that is more than {delay} older than the newest row is late "
            f"and is dropped",
            fix="remove latest_first, so that the oldest files are read first",
            query=next(iter(facts.readers(name)), None),
        )
