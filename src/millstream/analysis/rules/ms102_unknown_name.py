"""A name that is read and that neither a source nor a view has."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from millstream.analysis.facts import Code, Facts
from millstream.pipeline.sql import read

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.diagnostics.finding import Finding
    from millstream.pipeline.model import View

CODE = Code.of(__name__)
_CATALOG = "a table of a catalog is named with its database, like default.NAME"


def check(facts: Facts) -> Iterator[Finding]:
    """Names after FROM and JOIN, parameters of functions, and `from`."""
    pipeline, places = facts.pipeline, facts.places
    for view, marks in facts.graph.unknown.items():
        sql = pipeline.views[view].sql
        if sql is not None and (read(sql).mistakes or read(sql).denied):
            # Half a statement names tables that were not meant.
            continue
        for mark in marks:
            if (key := _named(pipeline.views[view], mark.text)) is not None:
                span, said = places.value("views", view, key), f"reads, by '{key}',"
            elif sql is None:
                span, said = places.value("views", view, "python"), "has a parameter"
            else:
                span, said = places.sql(view, mark.start, mark.stop), "reads"
            message = f"view '{view}' {said} '{mark.text}', which is no source or view"
            why = _CATALOG if sql is not None else "" if key else "a function's parameters name what it reads"
            yield CODE.error(message, span, why=why, fix=_fix(facts, mark.text), query=facts.query_of(view))
    for query, entry in pipeline.queries.items():
        if query in facts.graph.writes:
            continue
        if entry.from_ is None:
            said, fix = f"query '{query}' has no 'from', and no source or view is called so", "add 'from: …'"
            span, fix = places.key("queries", query), _near(facts, query) or fix
        else:
            said = f"query '{query}' reads '{entry.from_}', which is no source or view"
            span, fix = places.value("queries", query, "from"), _fix(facts, entry.from_)
        yield CODE.error(said, span, fix=fix, query=query)


def _named(view: View, name: str) -> str | None:
    """The key by which a view with state names what it reads; None for other views."""
    return next((key for read, key in view.inputs if read == name), None)


def _near(facts: Facts, name: str) -> str:
    known = {word.lower(): word for word in (*facts.pipeline.sources, *facts.pipeline.views)}
    near = get_close_matches(name.lower(), known, n=1)
    return f"write '{known[near[0]]}'" if near else ""


def _fix(facts: Facts, name: str) -> str:
    known = ", ".join((*facts.pipeline.sources, *facts.pipeline.views))
    return _near(facts, name) or f"name one of {known}"
