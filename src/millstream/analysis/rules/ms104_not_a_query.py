"""A view that does something else than read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.facts import Code, Facts
from millstream.pipeline.sql import read

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


def check(facts: Facts) -> Iterator[Finding]:
    """Commands, calls out of SQL, and files read by their path."""
    for name, view in facts.pipeline.views.items():
        for wrong in read(view.sql).denied if view.sql is not None else ():
            yield CODE.error(
                f"view '{name}' {wrong.message}",
                facts.places.sql(name, wrong.start, wrong.stop),
                why=wrong.why,
                fix="write the view as one SELECT over sources and views",
                query=facts.query_of(name),
            )
