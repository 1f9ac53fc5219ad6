"""The SQL is invalid in every dialect: an unclosed quote, an extra bracket, FROM without a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.rule_context import Code, Facts
from millstream.pipeline.sql.references import parse_sql

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


def check(facts: Facts) -> Iterator[Finding]:
    """Report the first certain mistake of each view; most others follow from it."""
    for name, view in facts.pipeline.views.items():
        is_parsed = view.sql is not None and name not in facts.places.unread
        for error in parse_sql(view.sql or "").mistakes[:1] if is_parsed else ():
            yield CODE.error(
                f"the SQL of view '{name}' cannot be read: {error.message}",
                facts.places.sql(name, error.start, error.stop),
                query=facts.query_of(name),
            )
