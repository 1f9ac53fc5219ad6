"""Which of Spark's nodes is which operator, and what each decides about its rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.analysis.dataflow import (
    Aggregate,
    BatchFunction,
    Column,
    Deduplicate,
    Limit,
    Operator,
    Stability,
    StatefulFunction,
    Volatile,
    Watermark,
)
from millstream.runtime.planning import growth
from millstream.runtime.planning.context import object_of
from millstream.runtime.planning.joins import join
from millstream.runtime.planning.lineage import flowing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from millstream.analysis.dataflow import Expression, TimeWindow
    from millstream.runtime.planning.context import Context
    from millstream.runtime.planning.expressions import Expressions, Parsed
    from millstream.runtime.planning.nodes import Node

_STATEFUL = {
    "FlatMapGroupsInPandasWithState",
    "FlatMapGroupsWithState",
    "TransformWithState",
    "TransformWithStateInPySpark",
    "TransformWithStateInPandas",
}
_BATCH = {
    "FlatMapGroupsInPandas",
    "FlatMapGroupsInArrow",
    "FlatMapCoGroupsInPandas",
    "FlatMapCoGroupsInArrow",
    "MapInPandas",
    "MapInArrow",
    "PythonMapInArrow",
    "MapGroups",
    "CoGroup",
    "MapPartitions",
    "MapElements",
    "FlatMapGroupsInR",
    "MapPartitionsInR",
}
_TIMEOUTS = {
    "EventTimeTimeout": "event_time",
    "EventTime": "event_time",
    "ProcessingTimeTimeout": "processing_time",
    "ProcessingTime": "processing_time",
}


def shaped(base: Operator, of: Context) -> Operator:
    """The operator of the class that says most."""
    kind = of.node.kind
    given: dict[str, Any] = {name: getattr(base, name) for name in Operator.__dataclass_fields__}
    match kind:
        case "EventTimeWatermark" | "UpdateEventTimeWatermarkColumn":
            marked = next((one for one in base.columns if one.delay is not None and _is(of, one)), None)
            if marked is not None and marked.delay is not None:
                return Watermark(**given, event_time=marked.name, delay=marked.delay)
            return base
        case "Aggregate":
            return _aggregate(given, of)
        case "Deduplicate" | "DeduplicateWithinWatermark" | "Distinct":
            columns = of.below[0].operator.columns
            keys = columns if kind == "Distinct" else named_keys(of.node, columns, of.below[0].ids)
            within = kind == "DeduplicateWithinWatermark"
            bounded, leaves = growth.of_deduplicate(keys, within=within, every=len(keys) == len(columns))
            return Deduplicate(**given, growth=bounded, leaves=leaves, keys=keys, within_watermark=within)
        case "Join" if len(of.below) == 2:
            return join(given, of)
        case kind if kind in _STATEFUL:
            timeout = _TIMEOUTS.get(object_of(of.node, "timeout") or object_of(of.node, "timeMode"), "none")
            bounded, leaves = growth.of_function(timeout)
            return StatefulFunction(
                **given,
                growth=bounded,
                leaves=leaves,
                keys=_grouping(of),
                function=of.processor or _function(of.fields),
                mode=object_of(of.node, "outputMode").lower(),
                timeout=timeout,
            )
        case kind if kind in _BATCH:
            return BatchFunction(**given, function=_function(of.fields), keys=_grouping(of))
        case "GlobalLimit":
            rows = next((one.value for one in base.expressions if one.function == "literal"), None)
            return Limit(**given, rows=rows if isinstance(rows, int) else None)
        case _:
            return base


def telling(node: Node, fields: Mapping[str, list[Parsed]]) -> Parsed | None:
    """The expression whose place is the operator's, where the node's own is a whole statement."""
    match node.kind:
        case "Filter":
            return next(iter(fields.get("condition", ())), None)
        case "Aggregate":
            keys = fields.get("groupingExpressions") or fields.get("aggregateExpressions") or ()
            return next((one.bare for one in keys if one.kind != "AttributeReference"), None) or next(
                iter(keys), None
            )
        case _:
            return None


def deciding(
    node: Node,
    fields: Mapping[str, list[Parsed]],
    values: Mapping[int, Expression],
    made: Expressions,
    columns: Mapping[int, Column],
) -> list[tuple[Volatile, ...]]:
    """What decides whether a row comes out of a node and is not stable."""
    match node.kind:
        case "Filter" | "Join":
            names = ("condition",)
        case "Aggregate":
            names = ("groupingExpressions",)
        case "Generate":
            names = ("generator",)
        case "Deduplicate" | "DeduplicateWithinWatermark":
            names = ("keys",)
        case "Distinct":
            return [column.volatile for column in columns.values()]
        case "Sample":
            return [(Volatile("sample", "sample", Stability.PARTITION),)]
        case kind if kind in _STATEFUL or kind in _BATCH:
            return [always(node, fields, values, made), *(column.volatile for column in columns.values())]
        case _:
            return []
    return [flowing(values[id(one)], made) for name in names for one in fields.get(name, ())]


def always(
    node: Node, fields: Mapping[str, list[Parsed]], values: Mapping[int, Expression], made: Expressions
) -> tuple[Volatile, ...]:
    """What flows into every column that a function of the user's makes."""
    if node.kind not in _STATEFUL and node.kind not in _BATCH:
        return ()
    found = tuple(one for some in fields.values() for tree in some for one in flowing(values[id(tree)], made))
    name = _function(fields)
    own = Volatile(name, node.kind, Stability.UNKNOWN)
    return found if any(one.stability is Stability.UNKNOWN for one in found) else (*found, own)


def named_keys(node: Node, columns: Sequence[Column], ids: Sequence[int] | None = None) -> tuple[Column, ...]:
    """The columns that rows are told apart by."""
    told = [
        (one.get("exprId", {}).get("id"), one.get("name"))
        for some in node.fields.get("keys") or ()
        for one in (some if isinstance(some, list) else ())
    ]
    by_id = dict(zip(ids or (), columns, strict=False))
    by_name = {one.name: one for one in columns}
    found = (by_id.get(number) or by_name.get(name) for number, name in told)
    return tuple(one for one in found if one is not None)


def _aggregate(given: dict[str, Any], of: Context) -> Operator:
    keys: list[Column] = []
    window: TimeWindow | None = None
    timed: Column | None = None
    known = {number: one for made in of.below for number, one in made.windows.items()}
    for tree in of.fields.get("groupingExpressions", ()):
        key = _key(tree, of)
        keys.append(key)
        reads = [one.id for one in tree.walk() if one.kind == "AttributeReference"]
        window = window or next((known[one] for one in reads if one in known), None)
        if key.delay is not None and timed is None:
            timed = key
    functions = tuple(
        one for tree in of.fields.get("aggregateExpressions", ()) for one in _functions(tree, of.value(tree))
    )
    bounded, leaves = growth.of_aggregate(keys, window, timed, complete=of.complete)
    return Aggregate(
        **given,
        growth=bounded,
        leaves=leaves,
        keys=tuple(keys),
        functions=functions,
        window=window,
        event_time_key=timed,
    )


def _functions(tree: Parsed, value: Expression) -> list[Expression]:
    """The aggregate functions in an expression: what Spark wrapped as one, and the user's own."""
    if "isDistinct" in tree.entry or tree.kind == "PythonUDAF":
        return [value]
    pairs = zip(tree.inputs, value.inputs, strict=False)
    return [found for one, inside in pairs for found in _functions(one, inside)]


def _key(tree: Parsed, of: Context) -> Column:
    """A key as a column; an expression is called as the column that gives it, or by its text."""
    value = of.value(tree)
    leaf = value.inputs[0] if value.function == "alias" and value.inputs else value
    if leaf.column is not None:
        return leaf.column
    for place, one in enumerate(of.node.output):
        alias = next((tree for tree in of.fields.get("aggregateExpressions", ()) if tree.id == one.id), None)
        if alias is not None and alias.kind == "Alias" and of.value(alias).inputs[0].text == leaf.text:
            return of.flow.columns()[place]
    leaves = [one.column for one in leaf.walk() if one.column]
    return Column(
        leaf.text,
        leaf.type,
        volatile=flowing(leaf, of.flow.made),
        origins=frozenset(origin for one in leaves for origin in one.origins),
    )


def _grouping(of: Context) -> tuple[Column, ...]:
    columns = {number: one for made in of.below for number, one in made.columns.items()}
    trees = of.fields.get("groupingAttributes") or of.fields.get("leftAttributes") or ()
    named = [columns[one.id] for one in trees if one.id in columns]
    count = of.node.fields.get("groupingAttributesLen")
    count = of.node.fields.get("leftGroupingLen") if count is None else count
    if not named and isinstance(count, int) and of.below:
        named = list(of.below[0].operator.columns[:count])
    return tuple(named)


def _function(fields: Mapping[str, list[Parsed]]) -> str:
    """The name of the user's function in a node."""
    for some in fields.values():
        for tree in some:
            for one in tree.walk():
                if one.kind in ("PythonUDF", "PythonUDAF", "PythonUDTF"):
                    return one.name
    return ""


def _is(of: Context, column: Column) -> bool:
    """Is it the column that the node marks?"""
    marks = of.fields.get("eventTime", ())
    return any(one.name.lower() == column.name.lower() for one in marks)
