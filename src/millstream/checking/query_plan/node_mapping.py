"""Map Spark's plan nodes to operators, and find the unstable expressions that decide about their rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.analysis.query.plan_model import (
    Aggregate,
    BatchFunction,
    Column,
    Deduplicate,
    Limit,
    Operator,
    Stability,
    StatefulFunction,
    VolatileExpression,
    WatermarkOperator,
)
from millstream.checking.query_plan import state_growth
from millstream.checking.query_plan.build_context import object_name
from millstream.checking.query_plan.expressions.column_lineage import find_volatile
from millstream.checking.query_plan.joins import build_join

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from millstream.analysis.query.plan_model import Expression, TimeWindow
    from millstream.checking.query_plan.build_context import Context
    from millstream.checking.query_plan.expressions.expressions import Expressions, ParsedExpression
    from millstream.checking.query_plan.plan_nodes import PlanNode

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


def specialise_operator(base: Operator, of: Context) -> Operator:
    """Return the operator as an instance of the most specific class."""
    kind = of.node.kind
    common_fields: dict[str, Any] = {name: getattr(base, name) for name in Operator.__dataclass_fields__}
    match kind:
        case "EventTimeWatermark" | "UpdateEventTimeWatermarkColumn":
            event_time = next(
                (
                    column
                    for column in base.columns
                    if column.delay is not None and _is_event_time(of, column)
                ),
                None,
            )
            if event_time is not None and event_time.delay is not None:
                return WatermarkOperator(**common_fields, event_time=event_time.name, delay=event_time.delay)
            return base
        case "Aggregate":
            return _aggregate(common_fields, of)
        case "Deduplicate" | "DeduplicateWithinWatermark" | "Distinct":
            columns = of.below[0].operator.columns
            keys = (
                columns if kind == "Distinct" else read_deduplication_keys(of.node, columns, of.below[0].ids)
            )
            within = kind == "DeduplicateWithinWatermark"
            bounded, leaves = state_growth.growth_of_deduplicate(
                keys, within=within, every=len(keys) == len(columns)
            )
            return Deduplicate(
                **common_fields, growth=bounded, leaves=leaves, keys=keys, is_within_watermark=within
            )
        case "Join" if len(of.below) == 2:
            return build_join(common_fields, of)
        case kind if kind in _STATEFUL:
            timeout = _TIMEOUTS.get(
                object_name(of.node, "timeout") or object_name(of.node, "timeMode"), "none"
            )
            bounded, leaves = state_growth.growth_of_function(timeout)
            return StatefulFunction(
                **common_fields,
                growth=bounded,
                leaves=leaves,
                keys=_grouping_keys(of),
                function=of.processor or _function(of.fields),
                mode=object_name(of.node, "outputMode").lower(),
                timeout=timeout,
            )
        case kind if kind in _BATCH:
            return BatchFunction(**common_fields, function=_function(of.fields), keys=_grouping_keys(of))
        case "GlobalLimit":
            rows = next(
                (expression.value for expression in base.expressions if expression.function == "literal"),
                None,
            )
            return Limit(**common_fields, rows=rows if isinstance(rows, int) else None)
        case _:
            return base


def locating_expression(
    node: PlanNode, fields: Mapping[str, list[ParsedExpression]]
) -> ParsedExpression | None:
    """Return the expression that locates the operator if the node's own place is a whole statement."""
    match node.kind:
        case "Filter":
            return next(iter(fields.get("condition", ())), None)
        case "Aggregate":
            keys = fields.get("groupingExpressions") or fields.get("aggregateExpressions") or ()
            return next((key.bare for key in keys if key.kind != "AttributeReference"), None) or next(
                iter(keys), None
            )
        case _:
            return None


def find_row_volatile(
    node: PlanNode,
    fields: Mapping[str, list[ParsedExpression]],
    values: Mapping[int, Expression],
    expressions: Expressions,
    columns: Mapping[int, Column],
) -> list[tuple[VolatileExpression, ...]]:
    """Return the unstable expressions that decide whether a node emits a row."""
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
            return [(VolatileExpression("sample", "sample", Stability.PARTITION),)]
        case kind if kind in _STATEFUL or kind in _BATCH:
            return [
                find_function_volatile(node, fields, values, expressions),
                *(column.volatile for column in columns.values()),
            ]
        case _:
            return []
    return [
        find_volatile(values[id(expression)], expressions)
        for name in names
        for expression in fields.get(name, ())
    ]


def find_function_volatile(
    node: PlanNode,
    fields: Mapping[str, list[ParsedExpression]],
    values: Mapping[int, Expression],
    expressions: Expressions,
) -> tuple[VolatileExpression, ...]:
    """Return the unstable values that affect every column of a user's function."""
    if node.kind not in _STATEFUL and node.kind not in _BATCH:
        return ()
    volatile = tuple(
        cause
        for some in fields.values()
        for tree in some
        for cause in find_volatile(values[id(tree)], expressions)
    )
    name = _function(fields)
    own_volatile = VolatileExpression(name, node.kind, Stability.UNKNOWN)
    return (
        volatile
        if any(item.stability is Stability.UNKNOWN for item in volatile)
        else (*volatile, own_volatile)
    )


def read_deduplication_keys(
    node: PlanNode, columns: Sequence[Column], ids: Sequence[int] | None = None
) -> tuple[Column, ...]:
    """Return the columns by which duplicates are detected."""
    keys = [
        (item.get("exprId", {}).get("id"), item.get("name"))
        for some in node.fields.get("keys") or ()
        for item in (some if isinstance(some, list) else ())
    ]
    by_id = dict(zip(ids or (), columns, strict=False))
    by_name = {column.name: column for column in columns}
    matches = (by_id.get(number) or by_name.get(name) for number, name in keys)
    return tuple(match for match in matches if match is not None)


def _aggregate(common_fields: dict[str, Any], of: Context) -> Operator:
    keys: list[Column] = []
    window: TimeWindow | None = None
    event_time_key: Column | None = None
    known = {number: time_window for child in of.below for number, time_window in child.windows.items()}
    for tree in of.fields.get("groupingExpressions", ()):
        key = _key_column(tree, of)
        keys.append(key)
        reads = [term.id for term in tree.walk() if term.kind == "AttributeReference"]
        window = window or next((known[read] for read in reads if read in known), None)
        if key.delay is not None and event_time_key is None:
            event_time_key = key
    functions = tuple(
        expression
        for tree in of.fields.get("aggregateExpressions", ())
        for expression in _functions(tree, of.value(tree))
    )
    bounded, leaves = state_growth.growth_of_aggregate(keys, window, event_time_key, complete=of.is_complete)
    return Aggregate(
        **common_fields,
        growth=bounded,
        leaves=leaves,
        keys=tuple(keys),
        functions=functions,
        window=window,
        event_time_key=event_time_key,
    )


def _functions(tree: ParsedExpression, value: Expression) -> list[Expression]:
    """Return the aggregate functions in an expression, Spark's and the user's own."""
    if "isDistinct" in tree.entry or tree.kind == "PythonUDAF":
        return [value]
    pairs = zip(tree.inputs, value.inputs, strict=False)
    return [function for term, inside in pairs for function in _functions(term, inside)]


def _key_column(tree: ParsedExpression, of: Context) -> Column:
    """Return a key as a column. An expression is named by its output column or by its text."""
    value = of.value(tree)
    leaf = value.inputs[0] if value.function == "alias" and value.inputs else value
    if leaf.column is not None:
        return leaf.column
    for place, attribute in enumerate(of.node.output):
        alias = next(
            (tree for tree in of.fields.get("aggregateExpressions", ()) if tree.id == attribute.id), None
        )
        if alias is not None and alias.kind == "Alias" and of.value(alias).inputs[0].text == leaf.text:
            return of.flow.columns()[place]
    leaves = [expression.column for expression in leaf.walk() if expression.column]
    return Column(
        leaf.text,
        leaf.type,
        volatile=find_volatile(leaf, of.flow.expressions),
        origins=frozenset(origin for column in leaves for origin in column.origins),
    )


def _grouping_keys(of: Context) -> tuple[Column, ...]:
    columns = {number: column for child in of.below for number, column in child.columns.items()}
    trees = of.fields.get("groupingAttributes") or of.fields.get("leftAttributes") or ()
    named = [columns[term.id] for term in trees if term.id in columns]
    count = of.node.fields.get("groupingAttributesLen")
    count = of.node.fields.get("leftGroupingLen") if count is None else count
    if not named and isinstance(count, int) and of.below:
        named = list(of.below[0].operator.columns[:count])
    return tuple(named)


def _function(fields: Mapping[str, list[ParsedExpression]]) -> str:
    """Return the name of the user's function in a node."""
    for expressions in fields.values():
        for tree in expressions:
            for part in tree.walk():
                if part.kind in ("PythonUDF", "PythonUDAF", "PythonUDTF"):
                    return part.name
    return ""


def _is_event_time(of: Context, column: Column) -> bool:
    """Return whether the column is the event-time column of the node."""
    marked = of.fields.get("eventTime", ())
    return any(mark.name.lower() == column.name.lower() for mark in marked)
