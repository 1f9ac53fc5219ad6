"""Write docs/reference/restarts.md from runs of the matrix."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from restart_run import Edit, Outcome

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "restarts.md"
_WORDS = {
    "right": "right rows",
    "wrong": "**wrong rows, no error**",
    "refused": "refuses the start",
}
# The title of each base pipeline's section.
_TITLES = {
    "rows": "A filter and expressions",
    "totals": "Aggregates by key",
    "windows": "Windows in update mode",
    "closed": "Windows in append mode",
    "sessions": "Session windows",
    "distinct": "DISTINCT",
    "unrepeated": "Deduplication within the watermark",
    "pairs": "An inner join of two streams",
    "left": "A left join of two streams",
    "semi": "A left semi join of two streams",
    "union": "A union of two streams",
    "delta": "Aggregates of a Delta table",
    "kafka": "Rows of a Kafka topic",
    "topics": "A union of two Kafka topics",
    "processor": "A processor (`transformWithState`)",
    "older": "A function with state (`applyInPandasWithState`)",
    "function": "An aggregate of a Python function's result",
    "plain_function": "A Python function without state",
}
_OTHER = "right rows with this input, **wrong rows, no error** with other input"
HEADING = """# What a changed query does with its checkpoint

Each section begins with a query that has already run. Each row of its table is one change of this query, with the
verdict of `millstream plan`, and with what Spark 4.2.0 does when the changed query continues from the checkpoint.
*Right rows* means that, for the input after the change, Spark writes the same rows as if the query had had the
changed definition from the start. Some changes of a query's state have an effect only with certain rows; these
changes were tried with a second input too.

*Cannot tell* is the verdict for changed Python code. The text of the code does not show whether the new code can
continue with the values that the old code stored; the tables contain examples of both cases.

`MILLSTREAM_SWEEP=all pytest tests/spark/restarts` runs every row and writes these tables.
"""


def update_page(first: Mapping[Edit, Outcome], others: Iterable[Edit]) -> None:
    """Write the page with what has run: outcomes with the first input, and edits that the second one gets wrong.

    Lines of other edits stay as a former run has written them.
    """
    from edits import EDITS

    lines = read_lines(PAGE.read_text())
    for edit, outcome in first.items():
        verdict = outcome.plan.verdict.replace("_", " ")
        former = lines.get((edit.base, edit.name), "")
        what = _WORDS[outcome.what]
        if outcome.what == "right" and outcome.plan.verdict.is_refused and former.endswith(f"| {_OTHER} |"):
            what = _OTHER
        lines[edit.base, edit.name] = f"| {edit.name} | {verdict} | {what} |"
    for edit in others:
        line = lines[edit.base, edit.name]
        lines[edit.base, edit.name] = line.replace(f"| {_WORDS['right']} |", f"| {_OTHER} |")
    PAGE.write_text(format_page(EDITS, lines))


def format_page(edits: Iterable[Edit], lines: Mapping[tuple[str, str], str]) -> str:
    """Return the page: a table for each base pipeline."""
    from bases import BASES

    parts, edits = [HEADING], list(edits)
    for base, spec in BASES.items():
        table = [lines[base, edit.name] for edit in edits if edit.base == base and (base, edit.name) in lines]
        if not table:
            continue
        parts.append(f"\n## {_TITLES[base]}\n\n{_describe(spec)}\n")
        parts.append("\n| change | `plan` says | Spark |\n| --- | --- | --- |\n")
        parts += [f"{line}\n" for line in table]
    return "".join(parts)


def _describe(spec: Mapping[str, object]) -> str:
    """Return the SQL of a pipeline, or its Python code."""
    view, mode = spec["views"]["result"], spec["queries"]["out"]["output_mode"]  # type: ignore[index]
    sql = " ".join(view.get("sql", "").split())
    parts = [f"```python\n{code.strip()}\n```\n" for code in spec.get("code", {}).values()]  # type: ignore[attr-defined]
    if sql:
        parts.append(f"```sql\n{sql}  -- output mode {mode}\n```\n")
    return "\n".join(parts).rstrip()


def read_lines(text: str) -> dict[tuple[str, str], str]:
    """Return the lines of the tables by base and change."""
    base, lines = "", {}
    bases = {title: base for base, title in _TITLES.items()}
    for line in text.splitlines():
        if line.startswith("## "):
            base = bases[line.removeprefix("## ")]
        elif line.startswith("| ") and not line.startswith(("| change", "| ---")):
            lines[base, line.split(" | ")[0].removeprefix("| ")] = line
    return lines
