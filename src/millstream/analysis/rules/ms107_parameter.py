"""Parameters of SQL that have no value, and values that no SQL asks for."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from millstream.analysis.facts import Code, Facts
from millstream.pipeline.sql import read

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


def check(facts: Facts) -> Iterator[Finding]:
    """Each `:name` without a value, and each value without a `:name`."""
    params = facts.pipeline.params
    asked: set[str] = set()
    for name, view in facts.pipeline.views.items():
        for mark in read(view.sql).params if view.sql is not None else ():
            asked.add(mark.text)
            if mark.text not in params:
                near = get_close_matches(mark.text, params, n=1)
                yield CODE.error(
                    f"view '{name}' asks for parameter ':{mark.text}', which has no value",
                    facts.places.sql(name, mark.start, mark.stop),
                    fix=f"write ':{near[0]}'" if near else f"add 'params: {{{mark.text}: …}}'",
                    query=facts.query_of(name),
                )
    for param in params:
        if param not in asked:
            said = f"parameter '{param}' is asked for by no view"
            yield CODE.warning(
                said, facts.places.key("params", param), fix="remove it, or use it as :" + param
            )
