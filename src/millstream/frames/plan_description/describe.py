"""Walk a query's optimised plan from the sources up, and describe its operators with state."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime
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
_INSTANT = re.compile(r"\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?")
_NOW = ("current_timestamp", "now(", "localtimestamp", "current_date", "curdate")


@dataclass(frozen=True)
class SubplanDescription:
    """The part of a plan below one place: columns, operators with state, and the lines since the last of them."""

    scope: Scope
    stateful: tuple[RecordedStatefulOperator, ...] = ()
    watermarks: tuple[RecordedWatermark, ...] = ()
    lines: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()


def describe_plan(spark: SparkSession, frame: DataFrame) -> RecordedPlan:
    """Describe the plan that Spark makes of a query's DataFrame. Nothing is read."""
    analyzed = internals.analyzed_plan(frame)
    before = datetime.now(UTC)
    root = LogicalNode(spark, internals.optimize_plan(spark, analyzed))
    is_timed = any(word in str(analyzed.toString()).lower() for word in _NOW)
    walk = _Walk(before if is_timed else None)
    described = walk.describe(root)
    columns = tuple(
        PlanExpression(
            described.scope.columns[attribute.id][1], attribute.type, attribute.nullable, attribute.name
        )
        for attribute in root.attributes
    )
    content = repr((described.stateful, described.watermarks, described.lines, described.functions, columns))
    return RecordedPlan(
        fingerprint=hashlib.sha256(content.encode()).hexdigest()[:16],
        stateful=described.stateful,
        watermarks=described.watermarks,
        output=described.lines,
        columns=columns,
        functions=described.functions,
    )


@dataclass(frozen=True)
class _Walk:
    """One walk over a plan. `began` is set if the plan contains the current time, which the optimiser replaces."""

    began: datetime | None

    def describe(self, node: LogicalNode) -> SubplanDescription:
        children = [self.describe(child) for child in node.children]
        if not children:
            return SubplanDescription(_leaf_scope(node))
        below = _merge(children)
        if node.kind == "CollectMetrics" and (name := node.metrics_name).startswith(_SOURCE_METRICS):
            source = name.removeprefix(_SOURCE_METRICS)
            return replace(below, scope=_source_scope(node, source), lines=(), functions=())
        if has_state(node):
            operator = describe_stateful(node, [child.scope for child in children], self.resolve)
            operator = replace(operator, input=below.lines, functions=below.functions)
            return SubplanDescription(
                self._scope_above(node, children, below.scope),
                (operator, *below.stateful),
                below.watermarks,
                functions=_python_functions(node, below.scope),
            )
        return SubplanDescription(
            self._scope_above(node, children, below.scope),
            below.stateful,
            (*below.watermarks, *self._watermark(node, below.scope)),
            (*below.lines, *self._lines(node, below.scope)),
            tuple(dict.fromkeys((*below.functions, *_python_functions(node, below.scope)))),
        )

    def resolve(self, scope: Scope, text: str) -> str:
        """Return an expression over columns of sources, with the current time by its name."""
        resolved = scope.resolve(text)
        if self.began is None:
            return resolved
        return _INSTANT.sub(self._replace_now, resolved)

    def _replace_now(self, match: re.Match[str]) -> str:
        instant = datetime.fromisoformat(match.group()[:26]).replace(tzinfo=UTC)
        assert self.began is not None
        return "current_timestamp()" if 0 <= (instant - self.began).total_seconds() < 60 else match.group()

    def _scope_above(self, node: LogicalNode, children: list[SubplanDescription], below: Scope) -> Scope:
        output = node.output
        if node.kind == "Project":
            return self._defined(below, node.expressions, output)
        if node.kind == "Aggregate":
            return self._defined(below, node.aggregate_expressions, output)
        if node.kind == "Union":
            return _union_scope(node, children)
        if node.kind == "Expand":
            # One projection for each window that overlaps others; the first one names the window.
            return self._defined(below, node.first_projection, output)
        if any(part in node.kind for part in _PYTHON):
            return below.keep(output, [self.resolve(below, text) for text in node.expressions])
        added = self.resolve(below, node.text)
        return below.keep(output, [f"{added}[{number}]" for number in range(len(output))])

    def _defined(self, below: Scope, expressions: list[str], output: list[str]) -> Scope:
        scope = below.define(expressions, output)
        if self.began is None:
            return scope
        return Scope(
            {key: (name, self.resolve(Scope(), text)) for key, (name, text) in scope.columns.items()}
        )

    def _watermark(self, node: LogicalNode, below: Scope) -> tuple[RecordedWatermark, ...]:
        if node.kind != "EventTimeWatermark":
            return ()
        return (RecordedWatermark(self.resolve(below, node.expressions[0]), node.watermark_delay),)

    def _lines(self, node: LogicalNode, below: Scope) -> tuple[str, ...]:
        """Return what a node does to the rows, a filter by its conditions."""
        if node.kind in _TRANSPARENT or any(part in node.kind for part in _PYTHON):
            return ()
        if node.kind == "Filter":
            conditions = [self.resolve(below, text) for text in node.conjuncts]
            return tuple(
                f"filter {text}"
                for text in sorted(conditions)
                if not any(part in text for part in _MALFORMED)
            )
        if node.kind == "Expand":
            return (f"{node.kind}: {node.projection_count} rows each",)
        return (shorten(f"{node.kind}: {self.resolve(below, node.text)}"),)


def _merge(children: list[SubplanDescription]) -> SubplanDescription:
    scope = children[0].scope
    for child in children[1:]:
        scope = scope.merged(child.scope)
    return SubplanDescription(
        scope,
        tuple(operator for child in children for operator in child.stateful),
        tuple(watermark for child in children for watermark in child.watermarks),
        tuple(line for child in children for line in child.lines),
        tuple(dict.fromkeys(name for child in children for name in child.functions)),
    )


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
    texts = []
    for child, described in zip(node.children, children, strict=True):
        texts.append([described.scope.columns[item.id][1] for item in child.attributes])
    columns = {}
    for number, item in enumerate(node.attributes):
        parts = [entries[number] for entries in texts]
        columns[item.id] = (item.name, shorten(f"union({', '.join(parts)})"))
    return Scope(columns)


def _python_functions(node: LogicalNode, scope: Scope) -> tuple[str, ...]:
    if not any(part in node.kind for part in _PYTHON):
        return ()
    return (shorten(scope.resolve(node.expressions[0])),)
