"""A proof finds dead letters that are missing, that are there twice, and that no record has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deltalake import DeltaTable, write_deltalake

from millstream.engine.batch.dead_letter_comparison import compare_dead_letters
from millstream.engine.batch.sink_comparison import Verdict

if TYPE_CHECKING:
    from spark.conftest import Project

ROW = {"id": "a", "amount": 1, "at": "2026-01-01T12:01:00Z"}
CUT = '{"cut off'


def pipeline(project: Project) -> Any:
    return project.pipeline(
        queries={"copy": {"from": "orders", "to": {"delta": str(project.folder / "table")}}}
    )


def compare(project: Project) -> tuple[Any, ...]:
    """The rows, and how many of them are missing, there twice, and of no record."""
    (verdict,) = compare_dead_letters(project.spark, pipeline(project))
    assert isinstance(verdict, Verdict)
    assert (verdict.query, verdict.sink) == ("copy", "dead letters of orders")
    defects = (verdict.missing, verdict.doubled, verdict.different)
    assert verdict.is_equal is not any(defects)
    return verdict.rows, defects


def test_dead_letters_are_compared_with_the_malformed_records_of_the_input(project: Project) -> None:
    assert compare_dead_letters(project.spark, pipeline(project)) == []
    # Two records that differ in nothing, not even in their file.
    project.add_lines(ROW, CUT, CUT, {**ROW, "amount": "many"})
    project.add_lines(ROW, CUT)
    assert project.run(pipeline(project))
    table = DeltaTable(pipeline(project).letters.target())
    letters = table.to_pyarrow_table()

    def store(*numbers: int, **changes: str) -> None:
        rows = letters.take(list(numbers)).to_pylist()
        changed = [{**row, **changes} for row in rows]
        write_deltalake(table, letters.from_pylist(changed, schema=letters.schema), mode="overwrite")

    assert compare(project) == (4, (0, 0, 0))
    store(0, 1, 2)
    assert compare(project) == (3, (1, 0, 0))
    store(0, 1, 2, 3, 3)
    assert compare(project) == (5, (0, 1, 0))
    store(0, 1, 2, 3, file="another")
    assert compare(project) == (4, (4, 0, 4))
    store(0, 1, 2, 3, expectation="is_paid")
    assert compare(project) == (0, (4, 0, 0))
