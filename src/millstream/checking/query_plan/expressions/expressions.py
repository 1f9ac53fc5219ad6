"""Parse the expressions of a plan node from Spark's flat JSON lists into trees with columns, values and places."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from millstream.analysis.query.plan_model import Column, Expression, Stability, VolatileExpression, WindowKind
from millstream.checking.query_plan.expressions import determinism
from millstream.checking.query_plan.expressions.expression_text import format_expression
from millstream.checking.query_plan.expressions.expression_type import DECODERS, read_type
from millstream.checking.query_plan.expressions.time_windows import read_window
from millstream.checking.query_plan.plan_nodes import UNANSWERED, simple_class_name
from millstream.checking.query_plan.source_spans import SqlSpan, parse
from millstream.checking.query_plan.type_ddl import to_ddl

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from millstream.analysis.query.plan_model import TimeWindow
    from millstream.checking.query_plan.expressions.column_lineage import BuiltOperator
    from millstream.checking.query_plan.source_spans import SourcePlaces
    from millstream.diagnostics.finding import Span

# Fields of Spark's expressions that are not settings.
_NO_SETTINGS = {"class", "num-children", "exprId", "resultId", "qualifier", "metadata", "nullable", "jvmId"}
# Expressions whose place a rule needs. Looking up the place of every expression would cost too many JVM calls.
_PLACED = {
    "Cast",
    "ParseToTimestamp",
    "ParseToDate",
    "GetTimestamp",
    "JsonToStructs",
    "CsvToStructs",
    "Divide",
    "GetArrayItem",
    "ElementAt",
    "RaiseError",
    "AssertTrue",
    "Remainder",
    "MakeTimestamp",
    "MakeDate",
}
# Fields with a node's own columns.
_OUTPUT = {"output", "outputAttrs", "generatorOutput"}


@dataclass
class ParsedExpression:
    """An expression with its class and its JSON entry."""

    kind: str
    entry: dict[str, Any]
    inputs: list[ParsedExpression] = field(default_factory=list)
    java: Callable[[], Any] = lambda: None
    """Returns the JVM's object. Called only if the place of the expression is needed."""

    @property
    def id(self) -> int | None:
        """The id of an attribute or alias, or None."""
        identifier = self.entry.get("exprId")
        return int(identifier["id"]) if isinstance(identifier, dict) and "id" in identifier else None

    @property
    def name(self) -> str:
        """The name of an attribute, alias or user-defined function."""
        return str(self.entry.get("name", ""))

    @property
    def bare(self) -> ParsedExpression:
        """The expression inside an alias, or any other expression itself."""
        return self.inputs[0].bare if self.kind == "Alias" and self.inputs else self

    def walk(self) -> Iterator[ParsedExpression]:
        """Yield the expression and all expressions below it."""
        yield self
        for child in self.inputs:
            yield from child.walk()


def parse_fields(entry: dict[str, Any], java: Any) -> dict[str, list[ParsedExpression]]:
    """Return the expressions of a node, by field, in Spark's order."""
    fields: dict[str, list[ParsedExpression]] = {}
    number = 0
    for name, value in entry.items():
        for entries in _expression_lists(value):
            if name not in _OUTPUT:
                fields.setdefault(name, []).append(_parse(entries, _nth_getter(java, number)))
            number += 1
    return fields


def _expression_lists(value: Any) -> Iterator[list[dict[str, Any]]]:
    """Yield the flat lists of expressions in a field's value, at any depth."""
    if isinstance(value, list):
        if value and isinstance(value[0], dict) and "num-children" in value[0]:
            if ".plans.logical." not in str(value[0].get("class")):
                yield value
        else:
            for item in value:
                yield from _expression_lists(item)


def _nth_getter(java: Any, number: int) -> Callable[[], Any]:
    return lambda: java.expressions().apply(number)


def _parse(entries: list[dict[str, Any]], java: Callable[[], Any]) -> ParsedExpression:
    return _parse_next(iter(entries), java)


def _parse_next(entries: Iterator[dict[str, Any]], java: Callable[[], Any]) -> ParsedExpression:
    entry = next(entries)
    kind = simple_class_name(entry)
    children = [
        _parse_next(entries, _child_getter(java, index)) for index in range(int(entry.get("num-children", 0)))
    ]
    # An expression that Spark replaces before running stores the user's expression in separate fields.
    replaced = [
        _parse(nested, _field_getter(java, name))
        for name, value in entry.items()
        for nested in _expression_lists(value)
    ]
    if kind == "AggregateExpression" and children:
        children[0].entry.setdefault("isDistinct", entry.get("isDistinct"))
        return children[0]
    if "replacement" in entry and replaced:
        children = replaced
    return ParsedExpression(kind, entry, children, java)


def _child_getter(java: Callable[[], Any], index: int) -> Callable[[], Any]:
    return lambda: java().children().apply(index)


def _field_getter(java: Callable[[], Any], name: str) -> Callable[[], Any]:
    def ask() -> Any:
        value = getattr(java(), name)()
        return value if hasattr(value, "origin") else value.head()

    return ask


class Expressions:
    """Converts the parsed expressions of one node into values, given the columns below the node."""

    def __init__(
        self,
        columns: Mapping[int, Column],
        where: SourcePlaces,
        span: Span | None,
        subqueries: Mapping[int, BuiltOperator] | None = None,
    ) -> None:
        """Take the columns by Spark's id, and the plans of subqueries by the Python id of their expression."""
        self._columns = columns
        self._where = where
        self._span = span
        self._subqueries = subqueries or {}
        self.volatile: dict[int, VolatileExpression] = {}
        """The unstable expressions, by the Python id of their value."""

    def value(self, parsed: ParsedExpression) -> Expression:
        """Return an expression as a value."""
        if time_window := read_window(parsed) if parsed.kind == "CreateNamedStruct" else None:
            return self._window(parsed, time_window)
        inputs = tuple(self.value(term) for term in parsed.inputs)
        function = determinism.sql_name(parsed.kind)
        if function in ("to_timestamp", "to_date") and parsed.entry.get("failOnError") is False:
            function = f"try_{function}"
        column, value = None, None
        kind = to_ddl(read_type(parsed))
        if parsed.kind == "AttributeReference":
            column = self._columns.get(_id_or_default(parsed)) or Column(parsed.name, kind)
        elif parsed.kind == "Literal":
            value = _literal_value(parsed.entry.get("value"), kind)
        elif (subquery := self._subqueries.get(id(parsed))) and (volatile := subquery.volatile):
            # Another run may give another result: the expression reads it as a column.
            column = Column(function, kind, volatile=volatile)
        elif not kind and parsed.kind in ("Alias", "KnownNullable") and inputs:
            kind = inputs[0].type
        settings = {
            name: _setting_word(item)
            for name, item in parsed.entry.items()
            if name not in _NO_SETTINGS
            and (isinstance(item, str | bool | dict) or name == "evalType")
            and _setting_word(item)
        }
        text = format_expression(function, parsed.entry, inputs, value)
        span = self._span
        stability = stability_of(parsed, inputs)
        if stability is not Stability.STABLE or (parsed.kind in _PLACED and _reads_column(inputs)):
            span = self.place(parsed)
            if parsed.kind in DECODERS:
                settings["options"] = _ask(parsed, "options")
            if parsed.kind == "Cast":
                settings["evalMode"] = _ask(parsed, "evalMode")
                if settings["evalMode"] == "TRY":
                    text = text.replace("cast(", "try_cast(", 1)
        expression = Expression(function, text, kind, inputs, column, value, span, settings, stability)
        if stability is not Stability.STABLE:
            function_name = (
                parsed.name.lower() if function.endswith(("_udf", "_udtf")) and parsed.name else function
            )
            self.volatile[id(expression)] = VolatileExpression(function_name, text, stability, span)
        return expression

    def _window(self, parsed: ParsedExpression, time_window: TimeWindow) -> Expression:
        """Return a window as the user wrote it, not as Spark computes it."""
        attributes = (term for term in parsed.walk() if term.kind == "AttributeReference")
        inputs = tuple(self.value(attribute) for attribute in list(attributes)[:1])
        name = "session_window" if time_window.kind is WindowKind.SESSION else "window"
        lengths = [time_window.length, time_window.slide if time_window.kind is WindowKind.SLIDING else None]
        parts = [time_window.column, *(str(duration) for duration in lengths if duration is not None)]
        return Expression(
            name,
            f"{name}({', '.join(parts)})",
            "struct<start:timestamp,end:timestamp>",
            inputs,
            span=self._span,
        )

    def place(self, parsed: ParsedExpression) -> Span | None:
        """Return the span of an expression in the user's code, or else of its operator."""
        try:
            origin = parse(str(parsed.java().origin().toString()))
        except (*UNANSWERED, AttributeError, TypeError):
            # Spark's fields have another shape. The operator's place is close enough.
            return self._span
        if origin is None:
            return self._span
        span = self._where.sql(origin) if isinstance(origin, SqlSpan) else self._where.call(origin)
        return span or self._span


def stability_of(parsed: ParsedExpression, inputs: tuple[Expression, ...]) -> Stability:
    """Return the stability of an expression itself."""
    declared = parsed.entry.get("udfDeterministic", parsed.entry.get("isDeterministic"))
    floating = any(_is_floating(operand) for operand in inputs)
    return determinism.classify_stability(
        parsed.kind, declared if isinstance(declared, bool) else None, floating=floating
    )


def _is_floating(expression: Expression) -> bool:
    """Return whether an expression is a float or double, as far as Spark's JSON shows."""
    if expression.type:
        return expression.type in ("float", "double")
    return any(_is_floating(child) for child in expression.inputs)


def _reads_column(inputs: tuple[Expression, ...]) -> bool:
    """Return whether the inputs read a column. Without a column, an expression cannot fail for a single row."""
    return any(part.column for expression in inputs for part in expression.walk())


def _id_or_default(parsed: ParsedExpression) -> int:
    return -1 if parsed.id is None else parsed.id


def _ask(parsed: ParsedExpression, field: str) -> str:
    """Return a field that is not in Spark's JSON, such as the evalMode ANSI of a cast; "" if it is not known."""
    try:
        return str(getattr(parsed.java(), field)().toString())
    except (*UNANSWERED, AttributeError, TypeError):
        return ""


def _literal_value(text: Any, kind: str) -> object:
    """Return a literal's value in Python. Dates, times and intervals remain Spark's numbers."""
    if text is None:
        return None
    if kind == "boolean":
        return str(text) == "true"
    try:
        if kind in ("int", "bigint", "smallint", "tinyint") or kind.startswith(
            ("interval ", "timestamp", "date")
        ):
            return int(str(text))
        if kind in ("double", "float"):
            return float(str(text))
    except ValueError:
        # Spark prints some values as text.
        return str(text)
    return str(text)


def _setting_word(setting: Any) -> str:
    """Return a setting as a word: `Inner` for `{"object": "…catalyst.plans.Inner$"}`."""
    if isinstance(setting, dict):
        return (
            str(setting.get("object", "")).rstrip("$").rpartition(".")[2].rpartition("$")[2]
            if "object" in setting
            else ""
        )
    return str(setting).lower() if isinstance(setting, bool) else str(setting)
