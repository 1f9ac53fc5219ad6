"""A setting that lets a stream take its columns from the files it happens to find."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.edits import instead
from millstream.analysis.facts import Code, Facts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


KEY = "spark.sql.streaming.schemaInference"


def check(facts: Facts) -> Iterator[Finding]:
    """The setting of a spec."""
    for key, value in facts.pipeline.spark.items():
        if key.lower() == KEY.lower() and str(value).lower() == "true":
            yield CODE.warning(
                f"'{key}' lets a stream's columns follow from the files of the day",
                facts.places.value("spark", key),
                why="they are inferred at each start: another file gives other columns, and state no longer fits",
                fix="leave it out, and declare 'schema' on the source",
                edit=instead(facts.places, "false", "spark", key),
            )
