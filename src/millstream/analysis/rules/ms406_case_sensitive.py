"""Names that Spark is told to compare with case, where all else compares them without."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.facts import Code, Facts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)
_KEY = "spark.sql.caseSensitive"


def check(facts: Facts) -> Iterator[Finding]:
    """The value `true` alone: `false` is what Spark has."""
    if str(facts.pipeline.spark.get(_KEY, "false")).lower() == "true":
        yield CODE.warning(
            f"{_KEY} makes 'Id' and 'id' two columns",
            facts.places.key("spark", _KEY),
            why="tables of Delta and files read by others hold one of the two, and Spark does not keep the "
            "setting in the checkpoint: without it the same query has other columns",
            fix="remove the line, and give columns names that differ in more than case",
        )
