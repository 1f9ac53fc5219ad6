"""Two sources or views have names that Spark cannot tell apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.rule_context import Code, Facts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


def check(facts: Facts) -> Iterator[Finding]:
    """Report names that are equal when case is ignored."""
    labels: dict[str, str] = {}
    for section, names in (("sources", facts.pipeline.sources), ("views", facts.pipeline.views)):
        for name in names:
            label = f"{section.removesuffix('s')} '{name}'"
            first_label = labels.setdefault(name.lower(), label)
            if first_label != label:
                yield CODE.error(
                    f"{label} has the same name as {first_label}",
                    facts.places.key(section, name),
                    why="table names in SQL ignore case, so one of the two would hide the other",
                    fix="rename one of them",
                )
