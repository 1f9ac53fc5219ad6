"""Describe an operator with state: its key, what it stores for each key, and its conditions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.checkpoint.recorded_plan import PlanExpression, RecordedStatefulOperator
from millstream.frames.plan_description.node import LogicalNode, split_conjuncts, split_sequence
from millstream.spark import internals

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millstream.frames.plan_description.scope import Scope

_KINDS = {
    "Aggregate": "aggregation",
    "Deduplicate": "deduplication",
    "DeduplicateWithinWatermark": "deduplication within the watermark",
    "Join": "stream-stream join",
    "GlobalLimit": "limit",
    "TransformWithStateInPySpark": "processor (transformWithState)",
    "FlatMapGroupsInPandasWithState": "processor (applyInPandasWithState)",
}
_PROCESSORS = ("TransformWithStateInPySpark", "FlatMapGroupsInPandasWithState")


def has_state(node: LogicalNode) -> bool:
    """Return whether Spark keeps state for an operator."""
    if node.kind not in _KINDS or not node.is_streaming:
        return False
    return node.kind != "Join" or all(child.is_streaming for child in node.children)


def describe_stateful(node: LogicalNode, scopes: Sequence[Scope]) -> RecordedStatefulOperator:
    """Describe one operator. `scopes` are those of its children."""
    kind = _KINDS[node.kind]
    if node.kind == "Aggregate":
        return _describe_aggregation(node, kind, scopes[0])
    if node.kind == "Join":
        return _describe_join(node, kind, scopes)
    if node.kind in _PROCESSORS:
        return _describe_processor(node, kind, scopes[0])
    if node.kind == "GlobalLimit":
        return RecordedStatefulOperator(kind, condition=(node.expressions[0],))
    keys = node.expressions
    types = {str(item): attribute for item, attribute in zip(node.output, node.attributes, strict=True)}
    return RecordedStatefulOperator(
        kind,
        keys=tuple(
            PlanExpression(scopes[0].resolve(key), types[key].type, types[key].nullable, types[key].name)
            for key in keys
        ),
    )


def _describe_aggregation(node: LogicalNode, kind: str, scope: Scope) -> RecordedStatefulOperator:
    parts = internals.physical_aggregation(node.spark, node.plan)
    keys, aggregates = parts._1(), parts._2()
    terms = tuple(_term(keys.apply(index), scope) for index in range(keys.size()))
    is_session = any(term.text.startswith("session_window(") for term in terms)
    return RecordedStatefulOperator(
        # Spark has another operator for sessions, and refuses the state of one for the other.
        f"{kind} by session" if is_session else kind,
        keys=terms,
        values=tuple(
            _describe_aggregate(aggregates.apply(index), scope) for index in range(aggregates.size())
        ),
    )


def _describe_aggregate(expression: Any, scope: Scope) -> PlanExpression:
    """Describe one aggregate with the types of its buffer, which is what Spark stores and compares."""
    text = scope.resolve(str(expression.toString()))
    if not hasattr(expression, "aggregateFunction"):
        return PlanExpression(text, str(expression.dataType().catalogString()))
    buffer = expression.aggregateFunction().aggBufferAttributes()
    fields = [buffer.apply(index) for index in range(buffer.size())]
    types = [f"{item.dataType().catalogString()}{'' if item.nullable() else '!'}" for item in fields]
    return PlanExpression(text, ", ".join(types))


def _describe_join(node: LogicalNode, kind: str, scopes: Sequence[Scope]) -> RecordedStatefulOperator:
    left, right = node.children
    join_type = str(node.plan.joinType().toString())
    stored = [
        tuple(
            PlanExpression(scope.columns[item.id][1], item.type, item.nullable, item.name)
            for item in child.attributes
        )
        for child, scope in zip((left, right), scopes, strict=True)
    ]
    both = scopes[0].merged(scopes[1])
    parts = internals.equi_join_keys(node.spark, node.plan)
    if parts is None:
        return RecordedStatefulOperator(kind, values=stored[0], right_values=stored[1], join_type=join_type)
    left_keys, right_keys, condition = parts._2(), parts._3(), parts._4()
    conjuncts = split_conjuncts(node.spark, condition.get()) if condition.isDefined() else []
    return RecordedStatefulOperator(
        kind,
        keys=tuple(_term(left_keys.apply(index), scopes[0]) for index in range(left_keys.size())),
        values=stored[0],
        right_keys=tuple(_term(right_keys.apply(index), scopes[1]) for index in range(right_keys.size())),
        right_values=stored[1],
        join_type=join_type,
        condition=tuple(sorted(both.resolve(text) for text in conjuncts)),
    )


def _describe_processor(node: LogicalNode, kind: str, scope: Scope) -> RecordedStatefulOperator:
    """Describe a processor's key. The view that declares it describes its state."""
    attributes = node.children[0].attributes
    if node.kind == "FlatMapGroupsInPandasWithState":
        names = split_sequence(node.plan.groupingAttributes())
        chosen = [attributes[node.children[0].output.index(name)] for name in names]
    else:
        chosen = attributes[: int(node.plan.groupingAttributesLen())]
    return RecordedStatefulOperator(
        kind,
        keys=tuple(
            PlanExpression(scope.columns[item.id][1], item.type, item.nullable, item.name) for item in chosen
        ),
    )


def _term(expression: Any, scope: Scope) -> PlanExpression:
    """Describe a key."""
    text = str(expression.toString())
    return PlanExpression(
        scope.resolve(text),
        str(expression.dataType().catalogString()),
        bool(expression.nullable()),
        text.partition("#")[0] if text.count("#") == 1 else "",
    )
