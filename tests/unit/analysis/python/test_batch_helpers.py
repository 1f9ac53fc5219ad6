"""Methods, inner functions and loops that get the batch of a foreachBatch function."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import pytest

from millstream.analysis.python import foreach_batch
from unit.analysis.python.batch_code import code

if TYPE_CHECKING:
    from millstream.analysis.query.plan_model import BatchCode


def _read(text: str, name: str) -> BatchCode:
    text = textwrap.dedent(text).strip()
    line = next(number for number, line in enumerate(text.split("\n"), 1) if f"def {name}(" in line)
    facts = foreach_batch.read_source(text, "job.py", line, name)
    assert facts is not None
    return facts


def test_a_method_that_gets_the_batch_is_read() -> None:
    facts = _read(
        """
        class Sink:
            def each(self, batch, number):
                self.log(number)
                self.store(batch.where("a > 1"), "good")
                self.count = 1

            def log(self, number):
                print(number)

            def store(self, rows, table):
                try:
                    rows.write.format("jdbc").option("dbtable", table).mode("append").save()
                except Exception:
                    pass
        """,
        "each",
    )

    assert [(write.format, write.only_adds, write.span and write.span.line) for write in facts.writes] == [
        ("jdbc", True, 12)
    ]
    assert [span.line for span in facts.swallowing_clauses] == [13]
    assert not facts.is_opaque


@pytest.mark.parametrize("caller", ["Sink.store(batch)", "self.store(batch)"])
def test_a_static_method_has_no_object(caller: str) -> None:
    facts = _read(
        f"""
        class Sink:
            def each(self, batch, number):
                {caller}

            @staticmethod
            def store(rows):
                rows.write.mode("append").parquet("out")
        """,
        "each",
    )

    assert [write.format for write in facts.writes] == ["parquet"]


def test_a_function_outside_of_a_class_calls_its_static_method() -> None:
    facts = _read(
        """
        class Sink:
            @staticmethod
            def store(rows):
                rows.write.mode("append").parquet("out")

        def each(batch, number):
            Sink.store(batch)
        """,
        "each",
    )

    assert [write.format for write in facts.writes] == ["parquet"]
    assert not facts.is_opaque


@pytest.mark.parametrize("line", ["self.client.store(batch)", "other.store(batch)", "self.missing(batch)"])
def test_a_method_of_another_object_is_out_of_sight(line: str) -> None:
    facts = _read(
        f"""
        class Sink:
            def each(self, batch, number):
                {line}

            def store(self, rows):
                rows.write.mode("append").parquet("out")
        """,
        "each",
    )

    assert facts.is_opaque
    assert facts.writes == ()


@pytest.mark.parametrize("parameter", ["batch", "rows", "good"])
def test_an_inner_function_is_read_once(parameter: str) -> None:
    facts = code(
        f"""
        good = batch.where("a > 1")
        def store({parameter}, place):
            {parameter}.write.mode("append").parquet(place)
        store(good, "good")
        """
    )

    assert [write.format for write in facts.writes] == ["parquet"]
    assert len(facts.actions) == 1
    assert not facts.is_opaque


def test_an_argument_is_not_bound_where_an_inner_function_has_a_parameter_of_that_name() -> None:
    facts = code(
        """
        def store(rows, kind):
            write = lambda kind: rows.write.format(kind).save("a")
            write("parquet")
        store(batch, "jdbc")
        """
    )

    assert [write.format for write in facts.writes] == [""]


@pytest.mark.parametrize(
    "loop",
    [
        'for rows in [batch.where("a > 1"), batch.where("a < 1")]:',
        'for name, rows in [("a", batch.where("a > 1")), ("b", batch.where("a < 1"))]:',
        'for name, rows in {"a": batch.where("a > 1"), "b": batch.where("a < 1")}.items():',
        'for rows in {"a": batch.where("a > 1"), "b": batch}.values():',
        'parts = (batch.where("a > 1"), batch)\nfor rows in parts:',
        'parts = {"a": batch.where("a > 1"), "b": batch}\nfor name, rows in parts.items():',
    ],
)
def test_a_loop_over_parts_of_the_batch_writes_each(loop: str) -> None:
    facts = code(f'{loop}\n    rows.write.mode("append").parquet("out")')

    assert [write.format for write in facts.writes] == ["parquet"]
    assert len(facts.actions) == 2


def test_a_loop_over_other_values_writes_no_batch() -> None:
    facts = code('for rows in [other(), 5]:\n    rows.write.mode("append").parquet("out")')

    assert facts.writes == ()
    assert facts.actions == ()
