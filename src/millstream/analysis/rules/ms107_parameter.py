"""An SQL parameter has no value, or no SQL uses a value."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from millstream.analysis.rule_context import Code, Facts
from millstream.pipeline.sql.references import parse_sql

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


def check(facts: Facts) -> Iterator[Finding]:
    """Report each `:name` without a value, and each value without a `:name`."""
    params = facts.pipeline.params
    used: set[str] = set()
    for name, view in facts.pipeline.views.items():
        for mark in parse_sql(view.sql).params if view.sql is not None else ():
            used.add(mark.text)
            if mark.text not in params:
                matches = get_close_matches(mark.text, params, n=1)
                yield CODE.error(
                    f"view '{name}' uses parameter ':{mark.text}', which has no value",
                    facts.places.sql(name, mark.start, mark.stop),
                    fix=f"write ':{matches[0]}'" if matches else f"add 'params: {{{mark.text}: …}}'",
                    query=facts.query_of(name),
                )
    for param in () if _has_unread_sql(facts) else params:
        if param not in used:
            message = f"no view uses the parameter '{param}'"
            yield CODE.warning(
                message,
                facts.places.key("params", param),
                fix="remove it, or use it in the SQL of a view as :" + param,
            )


def _has_unread_sql(facts: Facts) -> bool:
    """Return whether the SQL of a view cannot be read, so that it may use any parameter."""
    texts = [view.sql for view in facts.pipeline.views.values() if view.sql is not None]
    return bool(facts.places.unread) or any(parse_sql(text).mistakes for text in texts)
