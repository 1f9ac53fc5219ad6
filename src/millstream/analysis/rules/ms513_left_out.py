"""Settings of a source permanently skip records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.rule_context import Code, Facts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


def check(facts: Facts) -> Iterator[Finding]:
    """Ask each streaming source for such settings; the connector gives the reason."""
    for name, entry in facts.pipeline.sources.items():
        for problem in () if entry.static else entry.source.omission_problems():
            span, edit = facts.setting(problem, "sources", name, "source")
            yield CODE.warning(
                f"source '{name}': {problem.message}",
                span,
                why=problem.why,
                fix=problem.fix,
                edit=edit,
                query=next(iter(facts.readers(name)), None),
            )
