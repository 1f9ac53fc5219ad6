"""A setting lets Spark infer the columns of a stream from the files that exist at the start."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.rule_context import Code, Facts
from millstream.analysis.text_edits import replace_value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


KEY = "spark.sql.streaming.schemaInference"


def check(facts: Facts) -> Iterator[Finding]:
    """Report the setting in a spec."""
    for key, value in facts.pipeline.spark.items():
        if key.lower() == KEY.lower() and str(value).lower() == "true":
            yield CODE.warning(
                f"'{key}' lets Spark infer the columns of a stream from the files that exist at the start",
                facts.places.value("spark", key),
                why="they are inferred again at each start, so a new file may lead to columns that do not match "
                "the state in the checkpoint",
                fix="remove this setting, and declare 'schema' on the source",
                edit=replace_value(facts.places, "false", "spark", key),
            )
