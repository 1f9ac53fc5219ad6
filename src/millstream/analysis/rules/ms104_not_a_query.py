"""The SQL of a view is not a plain SELECT."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.rule_context import Code, Facts
from millstream.pipeline.sql.references import parse_sql

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


def check(facts: Facts) -> Iterator[Finding]:
    """Report commands, calls to code outside SQL, and files read by path."""
    for name, view in facts.pipeline.views.items():
        for mistake in parse_sql(view.sql).denied if view.sql is not None else ():
            yield CODE.error(
                f"view '{name}' {mistake.message}",
                facts.places.sql(name, mistake.start, mistake.stop),
                why=mistake.why,
                fix="write the view as one SELECT over sources and views",
                query=facts.query_of(name),
            )
