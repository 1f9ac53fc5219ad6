"""Settings of a source under which records are passed over without a word."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.edits import instead
from millstream.analysis.facts import Code, Facts
from millstream.spec.guarantee import Guarantee

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


# Spark's settings for all readers of files of a session.
_FOR_ALL = {
    "spark.sql.files.ignorecorruptfiles": "files that cannot be read",
    "spark.sql.files.ignoremissingfiles": "files that are gone before they are read",
}


def check(facts: Facts) -> Iterator[Finding]:
    """An error where a query promises its rows once; a warning elsewhere. Each kind says so of itself."""
    for name, entry in facts.pipeline.sources.items():
        for problem in entry.source.losses():
            promised = next((query for query in facts.readers(name) if _promised(facts, query)), None)
            span, edit = facts.setting(problem, "sources", name, "source")
            yield (CODE.error if promised else CODE.warning)(
                f"source '{name}': {problem.message}",
                span,
                why=problem.why,
                fix=problem.fix,
                edit=edit,
                query=promised or next(iter(facts.readers(name)), None),
            )
    for key, value in facts.pipeline.spark.items():
        if (what := _FOR_ALL.get(key.lower())) and str(value).lower() == "true":
            yield CODE.warning(
                f"'{key}' passes over {what} without a word",
                facts.places.value("spark", key),
                why="rows of such a file are neither read nor counted, and no later batch reads them",
                fix="leave it out: a query then ends at such a file and says which",
                edit=instead(facts.places, "false", "spark", key),
            )


def _promised(facts: Facts, query: str) -> bool:
    """Does a sink of the query keep a promise of each row once?"""
    mode = facts.pipeline.queries[query].output_mode
    return any(
        entry.sink.guarantee(mode)[0] in (Guarantee.EXACTLY_ONCE, Guarantee.EFFECTIVELY_ONCE)
        for entry in facts.pipeline.queries[query].to
    )
