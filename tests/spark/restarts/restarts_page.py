"""Write docs/reference/restarts.md from a whole run of the matrix."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from restart_run import Edit, Outcome

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "restarts.md"
_WORDS = {
    "right": "right rows",
    "wrong": "**wrong rows, no error**",
    "refused": "refuses the start",
}
HEADING = """# What a changed query does with its checkpoint

Each line is one change of a query that had run: what `millstream plan` says, and what Spark 4.2.0 then does with the
checkpoint. *Right rows* are those that the changed query writes if it has always been like this, for the input after
the change. Where `plan` refuses and the rows are right, the input of the table has no row that shows the difference,
and other input would: a filter below state, for example, that no earlier row would have failed.

The table is written by `MILLSTREAM_SWEEP=all pytest tests/spark/restarts`, which runs every line.
"""


def write_page(outcomes: Mapping[Edit, Outcome]) -> None:
    """Write the page if every line of the matrix has run."""
    from edits import EDITS

    if len(outcomes) == len(EDITS):
        PAGE.write_text(format_page([(edit, outcomes[edit]) for edit in EDITS]))


def format_page(lines: Sequence[tuple[Edit, Outcome]]) -> str:
    """Return the page: a table for each base pipeline."""
    from bases import BASES

    parts = [HEADING]
    for base, spec in BASES.items():
        sql = " ".join(spec["views"]["result"]["sql"].split())
        mode = spec["queries"]["out"]["output_mode"]
        parts.append(f"\n## {base.capitalize()}\n\n```sql\n{sql}  -- output mode {mode}\n```\n")
        parts.append("\n| change | `plan` says | Spark |\n| --- | --- | --- |\n")
        parts += [
            f"| {edit.name} | {outcome.plan.verdict.replace('_', ' ')} | {_WORDS[outcome.what]} |\n"
            for edit, outcome in lines
            if edit.base == base
        ]
    return "".join(parts)
