"""Settings of a source skip records silently."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.rule_context import Code, Facts
from millstream.analysis.text_edits import replace_value
from millstream.spec.guarantee import Guarantee

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


# Spark settings for all file readers of a session.
_FILE_SETTINGS = {
    "spark.sql.files.ignorecorruptfiles": "files that cannot be read",
    "spark.sql.files.ignoremissingfiles": "files that are deleted before they are read",
}


def check(facts: Facts) -> Iterator[Finding]:
    """Report an error if a query has an exactly-once sink, otherwise a warning. The connector gives the reason."""
    for name, entry in facts.pipeline.sources.items():
        for problem in entry.source.data_loss_problems():
            reader = next(
                (query for query in facts.readers(name) if _has_exactly_once_sink(facts, query)), None
            )
            span, edit = facts.setting(problem, "sources", name, "source")
            yield (CODE.error if reader else CODE.warning)(
                f"source '{name}': {problem.message}",
                span,
                why=problem.why,
                fix=problem.fix,
                edit=edit,
                query=reader or next(iter(facts.readers(name)), None),
            )
    for key, value in facts.pipeline.spark.items():
        if (files := _FILE_SETTINGS.get(key.lower())) and str(value).lower() == "true":
            yield CODE.warning(
                f"'{key}' silently skips {files}",
                facts.places.value("spark", key),
                why="the rows of such a file are never read, and no metric counts them",
                fix="remove this setting; the query then fails at such a file, and its error message names the "
                "file",
                edit=replace_value(facts.places, "false", "spark", key),
            )


def _has_exactly_once_sink(facts: Facts, query: str) -> bool:
    """Return whether a sink of the query guarantees each row once."""
    mode = facts.pipeline.queries[query].output_mode
    return any(
        entry.sink.guarantee(mode)[0] in (Guarantee.EXACTLY_ONCE, Guarantee.EFFECTIVELY_ONCE)
        for entry in facts.pipeline.queries[query].to
    )
