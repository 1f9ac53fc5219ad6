"""Record the calls of a view's function as SQL, for the part of the DataFrame API that SQL can say."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from millstream.checking.scripts.sql_text import find_closing_bracket
from millstream.connectors.api.ddl import quote_name
from millstream.spark import internals

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

_SIMPLE = re.compile(r"[A-Za-z_][\w.]*(?:\.\*)?|\*")
# An operator of PySpark before Spark has resolved it: `=`(op, 'd').
_OPERATOR = re.compile(r"`([^\w\s`(]+)`\(")


class NotSayable(Exception):
    """A function does something that has no SQL here. The text says what."""


def record_sql(spark: SparkSession, function: Callable[..., Any], frames: Mapping[str, DataFrame]) -> str:
    """Return the SELECT of a view's function, given the frames of its sources and views by their name.

    Raises NotSayable. That the SQL gives the rows of the function must be shown by running both.
    """
    result = function(**{name: _Frame(spark, frame, _Select(name)) for name, frame in frames.items()})
    if not isinstance(result, _Frame):
        raise NotSayable("its result is not made from its parameters alone")
    return result._select.text


@dataclass(frozen=True)
class _Select:
    """A SELECT in parts."""

    source: str
    columns: str = ""
    where: tuple[str, ...] = ()
    group: str = ""

    @property
    def text(self) -> str:
        lines = [f"SELECT {self.columns or '*'}", f"FROM {self.source}"]
        if self.where:
            lines.append("WHERE " + " AND ".join(_in_parentheses(part, self.where) for part in self.where))
        if self.group:
            lines.append(f"GROUP BY {self.group}")
        return "\n".join(lines)

    def nested(self) -> _Select:
        """Return a SELECT of which this one is the source, or itself if it has neither columns nor groups."""
        if not self.columns and not self.group:
            return self
        inner = self.text.replace("\n", "\n  ")
        return _Select(f"(\n  {inner}\n)")


class _Frame:
    """A DataFrame that records its calls. Each call runs on the frame too, which knows the columns."""

    def __init__(
        self, spark: SparkSession, frame: DataFrame, select: _Select, grouping: tuple[Any, ...] | None = None
    ) -> None:
        self._spark, self._frame, self._select, self._grouping = spark, frame, select, grouping

    def where(self, condition: Any) -> _Frame:
        text = condition if isinstance(condition, str) else self._sql(condition)
        select = self._select.nested()
        return self._with(self._frame.where(condition), replace(select, where=(*select.where, text)))

    filter = where

    def select(self, *columns: Any) -> _Frame:
        flat = _flat(columns)
        return self._projected(self._frame.select(*flat), [self._column(column) for column in flat])

    def selectExpr(self, *texts: Any) -> _Frame:  # noqa: N802 - the name in PySpark
        flat = _flat(texts)
        return self._projected(self._frame.selectExpr(*flat), flat)

    def withColumn(self, name: str, column: Any) -> _Frame:  # noqa: N802
        text = f"{self._sql(column)} AS {quote_name(name)}"
        fields = [
            text if known.lower() == name.lower() else quote_name(known) for known in self._frame.columns
        ]
        if text not in fields:
            fields.append(text)
        return self._projected(self._frame.withColumn(name, column), fields)

    def withColumnRenamed(self, old: str, new: str) -> _Frame:  # noqa: N802
        fields = [
            f"{quote_name(known)} AS {quote_name(new)}" if known.lower() == old.lower() else quote_name(known)
            for known in self._frame.columns
        ]
        return self._projected(self._frame.withColumnRenamed(old, new), fields)

    def drop(self, *names: Any) -> _Frame:
        left = self._frame.drop(*names)
        return self._projected(left, [quote_name(name) for name in left.columns])

    def groupBy(self, *columns: Any) -> _Grouped:  # noqa: N802
        return _Grouped(self, _flat(columns))

    groupby = groupBy

    def join(self, other: Any, on: Any = None, how: str = "inner") -> _Frame:
        names = [on] if isinstance(on, str) else on
        is_named = isinstance(names, list) and all(isinstance(name, str) for name in names)
        if not isinstance(other, _Frame) or not is_named or how not in ("inner", "left", "left_outer"):
            raise NotSayable("a join on an expression")
        sides = [
            frame._select.source
            if not frame._select.where
            and not frame._select.columns
            and _SIMPLE.fullmatch(frame._select.source)
            else f"({frame._select.text})"
            for frame in (self, other)
        ]
        word = "JOIN" if how == "inner" else "LEFT JOIN"
        using = ", ".join(quote_name(name) for name in names)
        return _Frame(
            self._spark,
            self._frame.join(other._frame, on, how),
            _Select(f"{sides[0]} {word} {sides[1]} USING ({using})"),
        )

    @property
    def columns(self) -> list[str]:
        return self._frame.columns

    def __getitem__(self, name: Any) -> Column:
        if isinstance(name, str) and name in self._frame.columns:
            return F.col(quote_name(name))
        raise NotSayable("an item of a frame")

    def __getattr__(self, name: str) -> Column:
        if not name.startswith("_") and name in self._frame.columns:
            return F.col(quote_name(name))
        raise NotSayable(f"{name}()")

    def _projected(self, frame: DataFrame, columns: Sequence[str]) -> _Frame:
        return self._with(frame, replace(self._select.nested(), columns=", ".join(columns)))

    def _with(self, frame: DataFrame, select: _Select) -> _Frame:
        return _Frame(self._spark, frame, select)

    def _column(self, column: Any) -> str:
        if isinstance(column, str):
            return column if _SIMPLE.fullmatch(column) else quote_name(column)
        return self._sql(column)

    def _sql(self, column: Any) -> str:
        if not isinstance(column, Column):
            raise NotSayable("an argument that is not a column")
        return resolve_operators(internals.column_sql(self._spark, column))


class _Grouped:
    """The groups of a frame."""

    def __init__(self, frame: _Frame, keys: Sequence[Any]) -> None:
        self._frame, self._keys = frame, keys

    def agg(self, *columns: Any) -> _Frame:
        if not all(isinstance(column, Column) for column in columns):
            raise NotSayable("an aggregation by a dictionary")
        return self._aggregated(
            self._frame._frame.groupBy(*self._keys).agg(*columns), [self._frame._sql(c) for c in columns]
        )

    def count(self) -> _Frame:
        return self._aggregated(self._frame._frame.groupBy(*self._keys).count(), ["count(1) AS count"])

    def __getattr__(self, name: str) -> Any:
        raise NotSayable(f"groupBy().{name}()")

    def _aggregated(self, frame: DataFrame, aggregates: Sequence[str]) -> _Frame:
        keys = [self._frame._column(key) for key in self._keys]
        select = self._frame._select.nested()
        # A key may have a name of its own, which GROUP BY does not take.
        group = ", ".join(re.sub(r" AS `?\w+`?$", "", key) for key in keys)
        return self._frame._with(frame, replace(select, columns=", ".join([*keys, *aggregates]), group=group))


def resolve_operators(text: str) -> str:
    """Return SQL in which operators stand between their operands: `=`(a, 1) becomes (a = 1)."""
    while match := _OPERATOR.search(text):
        operands, end = _operands(text, match.end())
        if len(operands) == 2:
            resolved = f"({operands[0]} {match[1]} {operands[1]})"
        elif len(operands) == 1:
            resolved = f"({match[1]} {operands[0]})"
        else:
            raise NotSayable(f"the operator {match[1]}")
        text = f"{text[: match.start()]}{resolved}{text[end:]}"
    return text


def _operands(text: str, start: int) -> tuple[list[str], int]:
    """Return the operands of a call that begins before `start`, and the position after its parenthesis."""
    operands: list[str] = []
    depth, begin, position, quote = 0, start, start, ""
    while position < len(text):
        character = text[position]
        if quote:
            position += character == "\\"
            quote = "" if character == quote else quote
        elif character in "'\"`":
            quote = character
        elif character == "(":
            depth += 1
        elif character == ")" and depth == 0:
            return [*operands, text[begin:position].strip()], position + 1
        elif character == ")":
            depth -= 1
        elif character == "," and depth == 0:
            operands.append(text[begin:position].strip())
            begin = position + 1
        position += 1
    raise NotSayable("an expression whose parentheses do not match")


def _flat(values: Sequence[Any]) -> list[Any]:
    return [item for value in values for item in (value if isinstance(value, list | tuple) else [value])]


def _in_parentheses(part: str, parts: Sequence[str]) -> str:
    if len(parts) == 1 or (part.startswith("(") and find_closing_bracket(part, 1) == len(part)):
        return part
    # A comment ends with its line.
    return f"({part}\n)" if "--" in part else f"({part})"
