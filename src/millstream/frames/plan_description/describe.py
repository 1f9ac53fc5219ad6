"""Walk a query's optimised plan from the sources up, and describe its operators with state."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from millstream.checkpoint.recorded_plan import PlanExpression, RecordedPlan, RecordedWatermark
from millstream.frames.plan_description.node import LogicalNode
from millstream.frames.plan_description.scope import Scope, shorten
from millstream.frames.plan_description.stateful import describe_stateful, has_state
from millstream.spark import internals

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from millstream.checkpoint.recorded_plan import RecordedStatefulOperator

# The name of the metrics that each source counts directly after its records are decoded.
_SOURCE_METRICS = "millstream:source:"
_MALFORMED = ("_millstream_reason", "malformed record in source")
_PYTHON = ("EvalPython", "InPandas", "InArrow", "InPySpark", "PythonUDTF")
# They change which rows and columns there are only by an expression or by nothing at all.
_TRANSPARENT = (
    "SubqueryAlias",
    "View",
    "CollectMetrics",
    "EventTimeWatermark",
    "Repartition",
    "RepartitionByExpression",
    "RebalancePartitions",
    "ResolvedHint",
    "Project",
)
# In the text of a plan that may depend on the current time.
_CLOCK = ("current_timestamp", "now(", "localtimestamp", "current_date")


@dataclass(frozen=True)
class SubplanDescription:
    """The part of a plan below one place: columns, operators with state, and the lines since the last of them."""

    scope: Scope
    stateful: tuple[RecordedStatefulOperator, ...] = ()
    watermarks: tuple[RecordedWatermark, ...] = ()
    lines: tuple[str, ...] = ()
    branches: tuple[str, ...] = ()
    """The branch of a union, or the side of a join, in which each line is; empty text for none."""
    functions: tuple[str, ...] = ()


def describe_plan(spark: SparkSession, frame: DataFrame) -> RecordedPlan:
    """Describe the plan that Spark makes of a query's DataFrame. Nothing is read."""
    analyzed = internals.analyzed_plan(frame)
    text = str(analyzed.toString()).lower()
    has_clock = any(word in text for word in _CLOCK)
    if has_clock:
        analyzed = internals.hide_clock(spark, analyzed)
    root = LogicalNode(spark, internals.optimize_plan(spark, analyzed))
    described = _describe(root)
    columns = tuple(
        PlanExpression(
            described.scope.columns[attribute.id][1], attribute.type, attribute.nullable, attribute.name
        )
        for attribute in root.attributes
    )
    branches = described.branches if any(described.branches) else ()
    content = repr(
        (described.stateful, described.watermarks, described.lines, described.functions, columns, branches)
    )
    return RecordedPlan(
        fingerprint=hashlib.sha256(content.encode()).hexdigest()[:16],
        stateful=described.stateful,
        watermarks=described.watermarks,
        output=described.lines,
        output_branches=branches,
        columns=columns,
        functions=described.functions,
        has_clock=has_clock,
    )


def _describe(node: LogicalNode) -> SubplanDescription:
    children = [_describe(child) for child in node.children]
    if not children:
        return SubplanDescription(_leaf_scope(node))
    below = _merge(children, _name_branches(node, children))
    if node.kind == "CollectMetrics" and (name := node.metrics_name).startswith(_SOURCE_METRICS):
        source = name.removeprefix(_SOURCE_METRICS)
        return replace(below, scope=_source_scope(node, source), lines=(), branches=(), functions=())
    if has_state(node):
        operator = describe_stateful(node, [child.scope for child in children])
        operator = replace(
            operator,
            input=below.lines,
            branches=below.branches if any(below.branches) else (),
            functions=below.functions,
        )
        return SubplanDescription(
            _scope_above(node, children, below.scope),
            (operator, *below.stateful),
            below.watermarks,
            functions=_python_functions(node, below.scope),
        )
    lines = _lines(node, below.scope)
    return SubplanDescription(
        _scope_above(node, children, below.scope),
        below.stateful,
        (*below.watermarks, *_watermark(node, below.scope)),
        (*below.lines, *lines),
        (*below.branches, *("" for _ in lines)),
        tuple(dict.fromkeys((*below.functions, *_python_functions(node, below.scope)))),
    )


def _scope_above(node: LogicalNode, children: list[SubplanDescription], below: Scope) -> Scope:
    output = node.output
    if node.kind == "Project":
        return below.define(node.expressions, output)
    if node.kind == "Aggregate":
        return below.define(node.aggregate_expressions, output)
    if node.kind == "Union":
        return _union_scope(node, children)
    if node.kind == "Expand":
        # One projection for each window that overlaps others; the first one names the window.
        return below.define(node.first_projection, output)
    if any(part in node.kind for part in _PYTHON):
        return below.keep(output, [below.resolve(text) for text in node.expressions])
    added = below.resolve(node.text)
    return below.keep(output, [f"{added}[{number}]" for number in range(len(output))])


def _watermark(node: LogicalNode, below: Scope) -> tuple[RecordedWatermark, ...]:
    if node.kind != "EventTimeWatermark":
        return ()
    return (RecordedWatermark(below.resolve(node.expressions[0]), node.watermark_delay),)


def _lines(node: LogicalNode, below: Scope) -> tuple[str, ...]:
    """Return what a node does to the rows, a filter by its conditions."""
    if node.kind in _TRANSPARENT or any(part in node.kind for part in _PYTHON):
        return ()
    if node.kind == "Filter":
        conditions = [below.resolve(text) for text in node.conjuncts]
        return tuple(
            f"filter {text}" for text in sorted(conditions) if not any(part in text for part in _MALFORMED)
        )
    if node.kind == "Expand":
        return (f"{node.kind}: {node.projection_count} rows each",)
    return (shorten(f"{node.kind}: {below.resolve(node.text)}"),)


def _merge(children: list[SubplanDescription], names: list[str]) -> SubplanDescription:
    """Put the inputs of an operator together. `names` are those of the branches or sides, empty for none."""
    scope = children[0].scope
    for child in children[1:]:
        scope = scope.merged(child.scope)
    return SubplanDescription(
        scope,
        tuple(operator for child in children for operator in child.stateful),
        tuple(watermark for child in children for watermark in child.watermarks),
        tuple(line for child in children for line in child.lines),
        tuple(
            " in ".join(part for part in (branch, name) if part)
            for child, name in zip(children, names, strict=True)
            for branch in child.branches
        ),
        tuple(dict.fromkeys(name for child in children for name in child.functions)),
    )


def _name_branches(node: LogicalNode, children: list[SubplanDescription]) -> list[str]:
    """Return a name for each input of an operator, so that a filter has another meaning in another input.

    Empty names for a join without state, whose filters mostly tell by their columns on which side they are.
    """
    if node.kind == "Union":
        return [f"branch {number} of the union" for number in _number_branches(node, children)]
    if node.kind == "Join" and has_state(node):
        return ["the left side of the join", "the right side of the join"]
    return [""] * len(children)


def _number_branches(node: LogicalNode, children: list[SubplanDescription]) -> list[int]:
    """Return a number for each branch of a union, the same if branches with equal columns change places."""
    texts = _branch_columns(node, children)
    numbers = [0] * len(children)
    for columns in dict.fromkeys(texts):
        places = [place for place, others in enumerate(texts) if others == columns]
        by_lines = sorted(places, key=lambda place: (children[place].lines, children[place].branches))
        for place, number in zip(by_lines, places, strict=True):
            numbers[place] = number + 1
    return numbers


def _leaf_scope(node: LogicalNode) -> Scope:
    name = node.source_name or node.kind
    return Scope({item.id: (item.name, f"{name}.{item.name}") for item in node.attributes})


def _source_scope(node: LogicalNode, source: str) -> Scope:
    """Return the decoded columns of a source by their names, however its records are decoded."""
    return Scope(
        {
            item.id: (
                item.name,
                source if item.name == "_millstream_decoded" else f"{source}.{item.name}",
            )
            for item in node.attributes
        }
    )


def _union_scope(node: LogicalNode, children: list[SubplanDescription]) -> Scope:
    """Return the columns of a union. Spark gives them the ids of the first child's columns."""
    texts = _branch_columns(node, children)
    columns = {}
    for number, item in enumerate(node.attributes):
        parts = [entries[number] for entries in texts]
        columns[item.id] = (item.name, shorten(f"union({', '.join(parts)})"))
    return Scope(columns)


def _branch_columns(node: LogicalNode, children: list[SubplanDescription]) -> list[tuple[str, ...]]:
    """Return the texts of the columns of each branch of a union."""
    return [
        tuple(described.scope.columns[item.id][1] for item in child.attributes)
        for child, described in zip(node.children, children, strict=True)
    ]


def _python_functions(node: LogicalNode, scope: Scope) -> tuple[str, ...]:
    if not any(part in node.kind for part in _PYTHON):
        return ()
    return (shorten(scope.resolve(node.expressions[0])),)
