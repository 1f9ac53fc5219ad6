"""A source and a view, or two of either, that Spark cannot tell apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.facts import Code, Facts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


def check(facts: Facts) -> Iterator[Finding]:
    """Names that are the same without case."""
    seen: dict[str, str] = {}
    for section, names in (("sources", facts.pipeline.sources), ("views", facts.pipeline.views)):
        for name in names:
            word = f"{section.removesuffix('s')} '{name}'"
            other = seen.setdefault(name.lower(), word)
            if other != word:
                yield CODE.error(
                    f"{word} has the name of {other}",
                    facts.places.key(section, name),
                    why="SQL reads both by one name, in which case does not count; one would hide the other",
                    fix="give one of them another name",
                )
