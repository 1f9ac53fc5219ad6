"""The verdict on each query of a migrated script: the same rows, other rows, or not compared."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from millstream.engine.batch.row_hash import count_rows

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

_EXAMPLES = 3


class TableOutcome(StrEnum):
    """What the comparison of a query's tables says."""

    SAME = "same"
    DIFFERENT = "different"
    NOT_COMPARED = "not compared"


@dataclass(frozen=True)
class QueryVerdict:
    """The outcome for one query of a script."""

    query: str
    line: int
    outcome: TableOutcome
    reason: str = ""
    rows: int = 0
    """Rows of the script's tables."""
    only_in_script: int = 0
    only_in_project: int = 0
    examples: tuple[str, ...] = field(default=())

    def __str__(self) -> str:
        where = f"query '{self.query}' (line {self.line})"
        if self.outcome is TableOutcome.SAME:
            return f"{where}: the same {self.rows} rows"
        if self.outcome is TableOutcome.NOT_COMPARED:
            return f"{where}: not compared: {self.reason}"
        if self.reason:
            return f"{where}: different: {self.reason}"
        counts = (
            f"{self.only_in_script} rows only in the script's, {self.only_in_project} only in the project's"
        )
        return "\n".join([f"{where}: different: {counts}", *(f"  {example}" for example in self.examples)])

    def to_json(self) -> dict[str, Any]:
        """Return the form in the JSON of `migrate --prove`."""
        return {
            "query": self.query,
            "line": self.line,
            "outcome": str(self.outcome),
            "reason": self.reason or None,
            "rows": self.rows,
            "only_in_script": self.only_in_script,
            "only_in_project": self.only_in_project,
            "examples": list(self.examples),
        }


def compare_tables(
    query: str, line: int, pairs: Sequence[tuple[str, DataFrame, DataFrame | None]]
) -> QueryVerdict:
    """Compare the tables that both sides wrote for a query: each its name, the script's and the project's."""
    rows, only_script, only_project = 0, 0, 0
    examples: list[str] = []
    for name, script, project in pairs:
        if project is None:
            return QueryVerdict(query, line, TableOutcome.DIFFERENT, f"the project does not write '{name}'")
        if sorted(script.columns) != sorted(project.columns):
            reason = f"the columns are {', '.join(script.columns)}, and {', '.join(project.columns)} in the project"
            return QueryVerdict(query, line, TableOutcome.DIFFERENT, reason)
        mine = count_rows(script, script.columns, script.schema)
        theirs = count_rows(project, script.columns, script.schema)
        rows += sum(mine.values())
        only_script += sum((mine - theirs).values())
        only_project += sum((theirs - mine).values())
        examples += _examples("script ", script.columns, mine - theirs)
        examples += _examples("project", script.columns, theirs - mine)
    if only_script or only_project:
        return QueryVerdict(
            query, line, TableOutcome.DIFFERENT, "", rows, only_script, only_project, tuple(examples)
        )
    if not rows:
        return QueryVerdict(
            query, line, TableOutcome.NOT_COMPARED, "both tables are empty; give rows with --input"
        )
    return QueryVerdict(query, line, TableOutcome.SAME, "", rows)


def _examples(side: str, columns: Sequence[str], rows: Counter[tuple[str | None, ...]]) -> list[str]:
    return [
        f"{side}: {', '.join(f'{name}={value}' for name, value in zip(columns, row, strict=True))}"
        for row in sorted(rows, key=str)[:_EXAMPLES]
    ]
