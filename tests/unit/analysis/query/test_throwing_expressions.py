"""Expressions over unchecked source rows, on plans built by hand."""

from __future__ import annotations

from millstream.analysis.query.plan_model import Column, Expression, Operator, PlannedQuery, Read
from millstream.analysis.query.throwing_expressions import EvaluatedExpression, find_exposed, find_throwing
from millstream.spec.output_mode import OutputMode
from millstream.spec.trigger import Trigger

AMOUNT = Column("amount", "string", origins=frozenset({("orders", "amount")}), is_copied=True)
LEAF = Expression("column", "amount", "string", column=AMOUNT)
CAST = Expression("cast", "cast(amount as int)", "int", (LEAF,), settings={"evalMode": "ANSI"})
SOURCE = Read(3, "StreamingRelation", "", columns=(AMOUNT,), is_streaming=True, source="orders")


def project(expression: Expression, below: Operator = SOURCE) -> Operator:
    return Operator(0, "Project", "", (below,), (), (expression,), is_streaming=True)


def where(condition: Expression) -> Operator:
    return Operator(1, "Filter", "", (SOURCE,), (AMOUNT,), (condition,), is_streaming=True)


def query_of(root: Operator, **spark: str) -> PlannedQuery:
    settings = {key.replace("_", "."): value for key, value in spark.items()}
    return PlannedQuery("rows", root, OutputMode.APPEND, Trigger(), spark=settings)


def list_exposed(root: Operator) -> list[EvaluatedExpression]:
    return [item for item in find_exposed(query_of(root), None) if item.expression is CAST]


def raw(root: Operator) -> list[str]:
    return [column.name for item in list_exposed(root) if (column := item.raw(item.expression))]


def call(function: str, *inputs: Expression) -> Expression:
    return Expression(function, function, "", inputs)


def test_an_expression_of_a_projection_meets_every_row() -> None:
    assert raw(project(call("alias", CAST))) == ["amount"]


def test_a_branch_of_a_case_meets_some_rows_only() -> None:
    assert list_exposed(project(call("case", call("rlike", LEAF), CAST))) == []


def test_the_first_condition_of_a_case_meets_every_row() -> None:
    assert len(list_exposed(project(call("case", call("greater_than", CAST), LEAF)))) == 1


def test_what_stands_inside_a_function_that_tolerates_failure_is_left_out() -> None:
    assert list_exposed(project(call("try_divide", LEAF, CAST))) == []


def test_a_column_that_a_condition_compares_is_looked_at() -> None:
    assert raw(project(CAST, where(call("rlike", LEAF)))) == []


def test_that_a_value_is_there_says_nothing_of_what_it_is() -> None:
    assert raw(project(CAST, where(call("is_not_null", LEAF)))) == ["amount"]


def test_a_condition_that_fails_itself_looks_at_nothing() -> None:
    assert raw(where(call("greater_than", CAST))) == ["amount"]


def test_nothing_is_thrown_where_ansi_mode_is_off() -> None:
    assert list(find_throwing(query_of(project(CAST)), None))
    assert list(find_throwing(query_of(project(CAST), spark_sql_ansi_enabled="false"), None)) == []


def test_a_static_table_is_no_row_from_outside() -> None:
    table = Operator(0, "Project", "", (SOURCE,), (), (CAST,), is_streaming=False)

    assert list_exposed(table) == []


VALUE = Column("value", "binary", origins=frozenset({("orders", "value")}), is_copied=True)
MESSAGE = Expression("column", "value", "binary", column=VALUE)
PART = Column("amount", "string", origins=VALUE.origins)


def with_name(name: str, expression: Expression) -> Expression:
    return Expression("alias", name, "", (expression,), settings={"name": name})


def test_a_part_of_a_message_that_the_query_decodes_comes_from_outside() -> None:
    decode = project(with_name("data", call("from_json", MESSAGE)))
    data = Expression(
        "column", "data", "struct<amount:string>", column=Column("data", "", origins=VALUE.origins)
    )
    operator = project(with_name("amount", call("get_struct_field", data)), decode)
    cast = Expression("cast", "", "int", (Expression("column", "amount", "string", column=PART),))

    query = PlannedQuery("rows", project(cast, operator), OutputMode.APPEND, Trigger())

    assert [item.is_unchecked(PART) for item in find_exposed(query, None) if item.expression is cast] == [
        True
    ]


def test_a_column_that_is_made_of_a_sources_own_is_none_of_the_sources() -> None:
    assert [item.is_unchecked(PART) for item in list_exposed(project(CAST))] == [False]
