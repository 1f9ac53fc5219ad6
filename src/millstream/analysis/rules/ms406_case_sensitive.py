"""A Spark setting that makes names case-sensitive, although all other parts ignore case."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.rule_context import Code, Facts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)
_KEY = "spark.sql.caseSensitive"


def check(facts: Facts) -> Iterator[Finding]:
    """Report the value `true` only: `false` is Spark's default."""
    if str(facts.pipeline.spark.get(_KEY, "false")).lower() == "true":
        yield CODE.warning(
            f"{_KEY} makes 'Id' and 'id' two columns",
            facts.places.key("spark", _KEY),
            why="Delta tables and other readers of files accept only one of the two, and Spark does not store the "
            "setting in the checkpoint: without it the same query reads other columns",
            fix="remove the line, and rename columns that differ only in case",
        )
