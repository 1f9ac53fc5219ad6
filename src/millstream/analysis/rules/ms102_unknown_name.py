"""A query or view reads a name that no source or view has."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from millstream.analysis.rule_context import Code, Facts
from millstream.pipeline.sql.references import parse_sql

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.diagnostics.finding import Finding
    from millstream.pipeline.model import View

CODE = Code.of(__name__)
_CATALOG = "if it is a table of the catalog, write it with its database, such as default.NAME"


def check(facts: Facts) -> Iterator[Finding]:
    """Check the names after FROM and JOIN, the parameters of functions, and `from`."""
    pipeline, places = facts.pipeline, facts.places
    for view, references in facts.graph.unknown.items():
        sql = pipeline.views[view].sql
        if sql is not None and (parse_sql(sql).mistakes or parse_sql(sql).denied):
            # An incomplete statement may seem to name tables that it does not read.
            continue
        for mark in references:
            if (key := _find_input_key(pipeline.views[view], mark.text)) is not None:
                span, text = places.value("views", view, key), f"reads, by '{key}',"
            elif sql is None:
                span, text = places.value("views", view, "python"), "has a parameter"
            else:
                span, text = places.sql(view, mark.start, mark.stop), "reads"
            message = f"view '{view}' {text} '{mark.text}', which is not a source or view"
            reason = (
                _CATALOG
                if sql is not None
                else ""
                if key
                else "each parameter of a view's function must have the name of a source or view, whose "
                "rows the function gets"
            )
            yield CODE.error(
                message, span, why=reason, fix=_suggest_fix(facts, mark.text), query=facts.query_of(view)
            )
    for query, entry in pipeline.queries.items():
        if query in facts.graph.writes:
            continue
        if entry.from_ is None:
            text, fix = f"query '{query}' has no 'from', and no source or view has its name", "add 'from: …'"
            span, fix = places.key("queries", query), _suggest_name(facts, query) or fix
        else:
            text = f"query '{query}' reads '{entry.from_}', which is not a source or view"
            span, fix = places.value("queries", query, "from"), _suggest_fix(facts, entry.from_)
        yield CODE.error(text, span, fix=fix, query=query)


def _find_input_key(view: View, name: str) -> str | None:
    """Return the key under which a stateful view names this input; `None` for other views."""
    return next((key for input_name, key in view.inputs if input_name == name), None)


def _suggest_name(facts: Facts, name: str) -> str:
    known = {word.lower(): word for word in (*facts.pipeline.sources, *facts.pipeline.views)}
    near = get_close_matches(name.lower(), known, n=1)
    return f"write '{known[near[0]]}'" if near else ""


def _suggest_fix(facts: Facts, name: str) -> str:
    known = ", ".join((*facts.pipeline.sources, *facts.pipeline.views))
    return _suggest_name(facts, name) or f"name one of {known}"
