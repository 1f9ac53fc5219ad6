"""Columns of an unknown source, learned from what Spark misses."""

from __future__ import annotations

import pytest
from pyspark.errors import AnalysisException

from millstream.checking.scripts.interception.columns.assumed_columns import AssumedColumns


class Refusal(AnalysisException):
    """An error of Spark with a condition and its parameters."""

    def __init__(self, condition: str, plan: str = "", **facts: str) -> None:
        super().__init__(f"[{condition}] refused. SQLSTATE: 42703;\n{plan}")
        self._condition, self._facts = condition, facts

    def getCondition(self) -> str:  # noqa: N802 - Spark's name
        return self._condition

    def getMessageParameters(self) -> dict[str, str]:  # noqa: N802 - Spark's name
        return self._facts


def missing(name: str, plan: str = "") -> Refusal:
    return Refusal("UNRESOLVED_COLUMN.WITH_SUGGESTION", plan, objectName=name)


PLAN = """'Sort ['kind ASC NULLS FIRST], true
+- 'Aggregate [town#3, 'kind], [town#3, 'kind, 'SUM(CASE WHEN 'is_new THEN 1 END) AS new#9, ('new + 'a.b) AS s#8]
   +- Relation [town#3,columns_not_known_in_a_check#4] json
"""


@pytest.mark.parametrize(
    ("errors", "ddl"),
    [
        ([missing("`id`"), missing("`ID`")], ", `id` STRING"),
        ([missing("`address`.`city`")], ", `address` MAP<STRING, STRING>"),
        ([missing("`o`.`id`")], ", `id` STRING"),
        ([Refusal("UNRESOLVED_USING_COLUMN_FOR_JOIN", colName="`id`", side="left")], ", `id` STRING"),
        ([Refusal("FIELD_NOT_FOUND", fieldName="`id`", fields="`a`")], ", `id` STRING"),
        (
            [missing("`ts`"), Refusal("DATATYPE_MISMATCH.X", inputSql='"ts"', requiredType='"TIMESTAMP"')],
            ", `ts` TIMESTAMP",
        ),
        (
            [missing("`ts`"), Refusal("EVENT_TIME_IS_NOT_ON_TIMESTAMP_TYPE", eventName='"ts"')],
            ", `ts` TIMESTAMP",
        ),
        (
            [
                missing("`tags`"),
                Refusal(
                    "DATATYPE_MISMATCH.CAST_WITHOUT_SUGGESTION",
                    sqlExpr='"tags"',
                    srcType='"STRING"',
                    targetType='"STRUCT<a: MAP<STRING, INT>>"',
                ),
            ],
            ", `tags` STRUCT<a: MAP<STRING, INT>>",
        ),
        (
            [
                missing("`log`.`steps`"),
                Refusal(
                    "DATATYPE_MISMATCH.BINARY_ARRAY_DIFF_TYPES",
                    sqlExpr='"array_union(log[steps], array(struct(1)))"',
                    leftType='"STRING"',
                    rightType='"ARRAY<STRUCT<step: INT NOT NULL>>"',
                ),
            ],
            ", `log` MAP<STRING, ARRAY<STRUCT<step: INT>>>",
        ),
        (
            [
                missing("`steps`"),
                Refusal(
                    "DATATYPE_MISMATCH.DATA_DIFF_TYPES",
                    sqlExpr='"concat(steps, array(struct(1)))"',
                    dataType='("STRING" or "ARRAY<STRUCT<step: INT NOT NULL>>")',
                ),
            ],
            ", `steps` ARRAY<STRUCT<step: INT>>",
        ),
        ([missing("`ok`"), Refusal("DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN", filter='"ok"')], ", `ok` BOOLEAN"),
        (
            [missing("`a`"), Refusal("INVALID_EXTRACT_BASE_FIELD_TYPE", base='"a"')],
            ", `a` MAP<STRING, STRING>",
        ),
        (
            [
                missing("`h`"),
                Refusal("DATATYPE_MISMATCH.Y", sqlExpr='"least(1, h)"', dataType='["DOUBLE", "STRING"]'),
            ],
            ", `h` DOUBLE",
        ),
        (
            [
                missing("`a`.`b`"),
                Refusal("DATATYPE_MISMATCH.Z", sqlExpr='"(a[b] * 2)"', inputType='"NUMERIC"'),
            ],
            ", `a` MAP<STRING, DOUBLE>",
        ),
        (
            [missing("`a`.`b`"), Refusal("INVALID_EXTRACT_BASE_FIELD_TYPE", base='"a[b]"')],
            ", `a` MAP<STRING, MAP<STRING, STRING>>",
        ),
        ([Refusal("TABLE_OR_VIEW_NOT_FOUND", objectName="`t`")], ""),
    ],
)
def test_a_column_is_learned_from_an_error(errors: list[Refusal], ddl: str) -> None:
    columns = AssumedColumns()
    columns.alias("o", ["table t"])

    for error in errors:
        columns.learn(["table t"], error)

    assert columns.ddl("table t") == ddl
    assert columns.has_grown == bool(ddl)


def test_a_further_error_about_a_known_column_teaches_nothing() -> None:
    columns = AssumedColumns()
    columns.learn(["table t"], missing("`id`"))
    columns.has_grown = False

    columns.learn(["table t"], missing("`id`"))

    assert not columns.has_grown


def test_a_text_that_names_a_function_without_parentheses_names_a_column() -> None:
    columns = AssumedColumns()

    columns.add_names_of_functions(["table t"], "SELECT user, 'user', t.user, user(), username FROM t")

    assert columns.ddl("table t") == ", `user` STRING"


def test_a_column_of_using_is_of_each_table_that_lacks_it() -> None:
    columns = AssumedColumns()
    lacking = Refusal("UNRESOLVED_USING_COLUMN_FOR_JOIN", colName="`id`", side="left")

    assert columns.learn(["joined", "first"], lacking)
    assert columns.learn(["joined", "first"], lacking)

    assert (columns.ddl("joined"), columns.ddl("first")) == (", `id` STRING", ", `id` STRING")
    assert not columns.learn(["joined", "first"], lacking)


def test_a_qualified_column_is_of_the_source_with_this_alias() -> None:
    columns = AssumedColumns()
    columns.alias("S", ["sales"])
    columns.alias("c", ["customers"])

    columns.learn(["sales", "customers"], missing("`c`.`name`"))
    columns.learn(["sales", "customers"], missing("`s`.`id`"))
    columns.learn(["sales"], missing("`c`.`other`"))
    for side in ("left", "right"):
        lacking = Refusal("UNRESOLVED_USING_COLUMN_FOR_JOIN", colName="`day`", side=side)
        columns.learn(["sales", "customers"], lacking)

    assert (columns.ddl("sales"), columns.ddl("customers")) == (
        ", `id` STRING, `day` STRING",
        ", `name` STRING, `day` STRING",
    )


def test_a_column_that_another_source_has_is_taken_back() -> None:
    columns = AssumedColumns()
    columns.learn(["sales", "products"], missing("`name`"))

    assert columns.learn(["sales", "products"], Refusal("AMBIGUOUS_REFERENCE", name="`name`"))
    assert columns.ddl("sales") == ""

    columns.learn(["sales", "products"], missing("`name`"))
    assert (columns.ddl("sales"), columns.ddl("products")) == ("", ", `name` STRING")


def test_the_columns_that_an_operator_lacks_are_learned_together() -> None:
    assumed = AssumedColumns()

    assumed.learn(["table towns"], missing("`kind`", PLAN))

    assert assumed.types("table towns") == {"is_new": "BOOLEAN", "kind": "STRING"}


def test_of_two_sources_only_the_missing_column_is_learned() -> None:
    assumed = AssumedColumns()

    assumed.learn(["table towns", "table roads"], missing("`kind`", PLAN))

    assert assumed.types("table towns") == {"kind": "STRING"}
