"""Expressions of a plan's node: from Spark's flat JSON lists to trees, with columns, values and places."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from millstream.analysis.dataflow import Column, Expression, Stability, Volatile, WindowKind
from millstream.runtime.planning import functions
from millstream.runtime.planning.ddl import ddl
from millstream.runtime.planning.nodes import UNANSWERED, kind_of
from millstream.runtime.planning.places import Stretch, parse
from millstream.runtime.planning.printing import printed
from millstream.runtime.planning.windows import window

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from millstream.analysis.dataflow import TimeWindow
    from millstream.diagnostics.finding import Span
    from millstream.runtime.planning.places import Where

# Fields of Spark's expressions that are no settings.
_NO_SETTINGS = {"class", "num-children", "exprId", "resultId", "qualifier", "metadata", "nullable", "jvmId"}
# What a rule asks the place of; looking up the place of every expression would cost too many calls.
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
class Parsed:
    """An expression with what the reader of a plan needs besides: the class, the number it is known by."""

    kind: str
    entry: dict[str, Any]
    inputs: list[Parsed] = field(default_factory=list)
    java: Callable[[], Any] = lambda: None
    """The JVM's own object, asked for only where its place is wanted."""

    @property
    def id(self) -> int | None:
        """The number of an attribute or alias."""
        told = self.entry.get("exprId")
        return int(told["id"]) if isinstance(told, dict) and "id" in told else None

    @property
    def name(self) -> str:
        """The name of an attribute, alias or function of the user's."""
        return str(self.entry.get("name", ""))

    @property
    def bare(self) -> Parsed:
        """What an alias stands for; any other expression itself."""
        return self.inputs[0].bare if self.kind == "Alias" and self.inputs else self

    def walk(self) -> Iterator[Parsed]:
        """Itself and all below it."""
        yield self
        for one in self.inputs:
            yield from one.walk()


def trees(entry: dict[str, Any], java: Any) -> dict[str, list[Parsed]]:
    """The expressions of a node, by field, in Spark's order."""
    found: dict[str, list[Parsed]] = {}
    number = 0
    for name, value in entry.items():
        for told in _lists(value):
            if name not in _OUTPUT:
                found.setdefault(name, []).append(_parse(told, _nth(java, number)))
            number += 1
    return found


def _lists(value: Any) -> Iterator[list[dict[str, Any]]]:
    """The flat lists of expressions in a field's value, however deep it nests them."""
    if isinstance(value, list):
        if value and isinstance(value[0], dict) and "num-children" in value[0]:
            if ".plans.logical." not in str(value[0].get("class")):
                yield value
        else:
            for inside in value:
                yield from _lists(inside)


def _nth(java: Any, number: int) -> Callable[[], Any]:
    return lambda: java.expressions().apply(number)


def _parse(told: list[dict[str, Any]], java: Callable[[], Any]) -> Parsed:
    return _one(iter(told), java)


def _one(told: Iterator[dict[str, Any]], java: Callable[[], Any]) -> Parsed:
    entry = next(told)
    kind = kind_of(entry)
    below = [_one(told, _child(java, index)) for index in range(int(entry.get("num-children", 0)))]
    # What Spark replaces before it runs keeps what the user wrote in fields of its own.
    replaced = [
        _parse(inside, _named(java, name)) for name, value in entry.items() for inside in _lists(value)
    ]
    if kind == "AggregateExpression" and below:
        below[0].entry.setdefault("isDistinct", entry.get("isDistinct"))
        return below[0]
    if "replacement" in entry and replaced:
        below = replaced
    return Parsed(kind, entry, below, java)


def _child(java: Callable[[], Any], index: int) -> Callable[[], Any]:
    return lambda: java().children().apply(index)


def _named(java: Callable[[], Any], name: str) -> Callable[[], Any]:
    def ask() -> Any:
        found = getattr(java(), name)()
        return found if hasattr(found, "origin") else found.head()

    return ask


class Expressions:
    """Turns parsed expressions of one node into values, given the columns below the node."""

    def __init__(self, columns: Mapping[int, Column], where: Where, span: Span | None) -> None:
        self._columns = columns
        self._where = where
        self._span = span
        self.volatile: dict[int, Volatile] = {}
        """What is not stable by itself, by the Python identity of its expression."""

    def value(self, parsed: Parsed) -> Expression:
        """An expression as a value."""
        if found := window(parsed) if parsed.kind == "CreateNamedStruct" else None:
            return self._window(parsed, found)
        inputs = tuple(self.value(one) for one in parsed.inputs)
        function = functions.name_of(parsed.kind)
        if function in ("to_timestamp", "to_date") and parsed.entry.get("failOnError") is False:
            function = f"try_{function}"
        told = parsed.entry.get("dataType")
        column, value = None, None
        kind = ddl(told)
        if parsed.kind == "AttributeReference":
            column = self._columns.get(_number(parsed)) or Column(parsed.name, kind)
        elif parsed.kind == "Literal":
            value = _value(parsed.entry.get("value"), kind)
        elif not kind and parsed.kind in ("Alias", "KnownNullable") and inputs:
            kind = inputs[0].type
        settings = {
            name: _plain(one)
            for name, one in parsed.entry.items()
            if name not in _NO_SETTINGS
            and (isinstance(one, str | bool | dict) or name == "evalType")
            and _plain(one)
        }
        shown = printed(function, parsed.entry, inputs, value)
        span = self._span
        stability = unstable(parsed, inputs)
        if stability is not Stability.STABLE or (parsed.kind in _PLACED and _varies(inputs)):
            span = self.place(parsed)
            if parsed.kind == "Cast":
                settings["evalMode"] = _mode(parsed)
                if settings["evalMode"] == "TRY":
                    shown = shown.replace("cast(", "try_cast(", 1)
        made = Expression(function, shown, kind, inputs, column, value, span, settings, stability)
        if stability is not Stability.STABLE:
            own = parsed.name.lower() if function.endswith(("_udf", "_udtf")) and parsed.name else function
            self.volatile[id(made)] = Volatile(own, shown, stability, span)
        return made

    def _window(self, parsed: Parsed, found: TimeWindow) -> Expression:
        """A window as its user wrote it, and not as Spark computes it."""
        times = (one for one in parsed.walk() if one.kind == "AttributeReference")
        inputs = tuple(self.value(one) for one in list(times)[:1])
        name = "session_window" if found.kind is WindowKind.SESSION else "window"
        lengths = [found.length, found.slide if found.kind is WindowKind.SLIDING else None]
        parts = [found.column, *(str(one) for one in lengths if one is not None)]
        return Expression(
            name,
            f"{name}({', '.join(parts)})",
            "struct<start:timestamp,end:timestamp>",
            inputs,
            span=self._span,
        )

    def place(self, parsed: Parsed) -> Span | None:
        """Where the user wrote an expression, or else the operator it belongs to."""
        try:
            origin = parse(str(parsed.java().origin().toString()))
        except (*UNANSWERED, AttributeError, TypeError):
            # Spark's fields have changed their shape: the operator's place is near enough.
            return self._span
        if origin is None:
            return self._span
        found = self._where.sql(origin) if isinstance(origin, Stretch) else self._where.call(origin)
        return found or self._span


def unstable(parsed: Parsed, inputs: tuple[Expression, ...]) -> Stability:
    """How stable an expression is by itself."""
    said = parsed.entry.get("udfDeterministic", parsed.entry.get("isDeterministic"))
    floating = any(_floating(one) for one in inputs)
    return functions.stability(parsed.kind, said if isinstance(said, bool) else None, floating=floating)


def _floating(expression: Expression) -> bool:
    """Is it a float or double, as far as Spark's JSON tells?"""
    if expression.type:
        return expression.type in ("float", "double")
    return any(_floating(one) for one in expression.inputs)


def _varies(inputs: tuple[Expression, ...]) -> bool:
    """Does it read any column? What reads none cannot fail for one row alone."""
    return any(one.column for given in inputs for one in given.walk())


def _number(parsed: Parsed) -> int:
    return -1 if parsed.id is None else parsed.id


def _mode(parsed: Parsed) -> str:
    """ANSI, TRY or LEGACY."""
    try:
        return str(parsed.java().evalMode().toString())
    except (*UNANSWERED, AttributeError, TypeError):
        return ""


def _value(told: Any, kind: str) -> object:
    """A literal's value as Python has it; dates, times and intervals stay Spark's numbers."""
    if told is None:
        return None
    if kind == "boolean":
        return str(told) == "true"
    try:
        if kind in ("int", "bigint", "smallint", "tinyint") or kind.startswith(
            ("interval ", "timestamp", "date")
        ):
            return int(str(told))
        if kind in ("double", "float"):
            return float(str(told))
    except ValueError:
        # Spark prints some of them as text.
        return str(told)
    return str(told)


def _plain(told: Any) -> str:
    """A setting as a word: `{"object": "…catalyst.plans.Inner$"}` is `Inner`."""
    if isinstance(told, dict):
        return (
            str(told.get("object", "")).rstrip("$").rpartition(".")[2].rpartition("$")[2]
            if "object" in told
            else ""
        )
    return str(told).lower() if isinstance(told, bool) else str(told)
