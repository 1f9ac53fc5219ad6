"""SQL that no parser takes: a quote without its end, a bracket too many, FROM without a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.facts import Code, Facts
from millstream.pipeline.sql import read

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


def check(facts: Facts) -> Iterator[Finding]:
    """The first sure mistake of each view; others mostly follow from it."""
    for name, view in facts.pipeline.views.items():
        known = view.sql is not None and name not in facts.places.unread
        for wrong in read(view.sql or "").mistakes[:1] if known else ():
            yield CODE.error(
                f"the SQL of view '{name}' cannot be read: {wrong.message}",
                facts.places.sql(name, wrong.start, wrong.stop),
                query=facts.query_of(name),
            )
