"""A Spark setting makes names case-sensitive, although all other parts ignore case."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.rule_context import Code

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.job_settings import JobSettings
    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)
_KEY = "spark.sql.caseSensitive"


def check_settings(settings: JobSettings) -> Iterator[Finding]:
    """Report the value `true` only: `false` is Spark's default."""
    for setting in settings.spark:
        if setting.key == _KEY and setting.value.lower() == "true":
            yield CODE.warning(
                f"{_KEY} makes 'Id' and 'id' two columns",
                setting.span,
                why="Delta tables and most readers of files do not accept both columns; and because Spark does not "
                "store this setting in the checkpoint, a start without it may read a different column",
                fix="remove this setting, and rename columns that differ only in case",
            )
