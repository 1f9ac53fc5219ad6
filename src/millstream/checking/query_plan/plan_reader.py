"""Build operators from the nodes of Spark's analysed plan."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from millstream.analysis.query.plan_model import Deduplicate, Operator, Read, WatermarkOperator
from millstream.checking.query_plan import node_mapping
from millstream.checking.query_plan.build_context import Context
from millstream.checking.query_plan.expressions.column_lineage import (
    BuiltOperator,
    ColumnFlow,
    find_volatile,
    merge_volatile,
    plain_column,
)
from millstream.checking.query_plan.expressions.expectations import read_expectations
from millstream.checking.query_plan.expressions.expressions import Expressions, parse_fields
from millstream.checking.query_plan.leaf_reads import read_leaf
from millstream.checking.query_plan.plan_nodes import (
    UNANSWERED,
    UNKNOWN_SHAPE,
    PlanNode,
    read_node,
    read_plan,
)
from millstream.checking.query_plan.pushed_conditions import push_conditions, rename_conditions
from millstream.checking.query_plan.source_spans import SourceCall, SourcePlaces, SqlSpan, parse
from millstream.checking.query_plan.state_growth import growth_of_deduplicate
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame

    from millstream.analysis.query.plan_model import Column, Expression, VolatileExpression
    from millstream.checking.query_plan.expressions.expressions import ParsedExpression
    from millstream.checking.query_plan.pushed_conditions import Conditions
    from millstream.diagnostics.finding import Span

_NOWHERE = SourcePlaces()
# The prefix of the metrics that the engine adds.
OURS = "millstream:"
# Nodes that only name things.
_NAMES = {"SubqueryAlias", "View", "WithCTE", "CTERelationDef", "CTERelationRef", "ResolvedHint"}


def operators(frame: DataFrame, where: SourcePlaces = _NOWHERE, mode: OutputMode | None = None) -> Operator:
    """Return the operators of a DataFrame, from Spark's analysed plan. The result is the root.

    `where` maps plan nodes to places and names. `mode` is the query's output mode, which decides when state is
    removed. Nodes that only name things (aliases, views, CTEs) are left out. A source of the spec is a Read with
    its watermark and deduplication, without the decoding of its bytes. Unknown nodes and expressions become a
    plain `Operator` or `Expression`. Runs no job.
    """
    builder = _Builder(where, complete=mode is OutputMode.COMPLETE)
    return _with_numbers(builder.build(read_plan(frame), None).operator, iter(range(1_000_000)))


def _with_numbers(operator: Operator, numbers: Iterator[int]) -> Operator:
    number = next(numbers)
    inputs = tuple(_with_numbers(child, numbers) for child in operator.inputs)
    subqueries = tuple(_with_numbers(child, numbers) for child in operator.subqueries)
    return replace(operator, number=number, inputs=inputs, subqueries=subqueries)


class _Builder:
    """Builds the operators of a plan in one traversal, from its leaves to its top."""

    def __init__(self, where: SourcePlaces, *, complete: bool) -> None:
        self._where = where
        self._complete = complete
        self._leaves = 0
        self._shared: dict[object, PlanNode] = {}
        # Spark stores the names of temporary views in lower case.
        self._names = {name.lower(): name for name in (*where.formats, *where.views)}

    def build(self, node: PlanNode, view: str | None, above: Conditions = ()) -> BuiltOperator:
        """Return the operators of a node and all nodes below it.

        `view` is the view that they belong to. `above` are the conditions that Spark moves down to the node.
        """
        if node.kind == "WithCTE":
            for child in node.children[:-1]:
                self._shared[child.fields.get("id")] = child.children[0]
            return self.build(node.children[-1], view, above)
        if node.kind == "CTERelationRef" and node.fields.get("cteId") in self._shared:
            return self._rename(node, self._shared[node.fields["cteId"]], view, above)
        if node.kind == "View" and (name := self._names.get(_view_name(node))):
            if name in self._where.formats:
                return self._source(node, name)
            return self._rename(node, node.children[0], name, above)
        if node.kind == "CollectMetrics" and str(node.fields.get("name", "")).startswith(OURS):
            # The node only counts rows, and Spark moves no condition below it.
            return self._rename(node, node.children[0], view, ())
        if node.kind in _NAMES and len(node.children) == 1:
            return self._rename(node, node.children[0], view, above)
        if not node.children:
            return self._leaf(node, view)
        pushed = push_conditions(node, above)
        below = [
            self.build(child, view, conditions)
            for child, conditions in zip(node.children, pushed, strict=True)
        ]
        try:
            return self._operator(node, below, view, above)
        except UNKNOWN_SHAPE:
            # An unknown shape of a node must not prevent the check of the pipeline.
            return self._plain_operator(node, below, view)

    def _operator(
        self, node: PlanNode, below: list[BuiltOperator], view: str | None, above: Conditions
    ) -> BuiltOperator:
        fields = parse_fields(node.fields, node.java)
        span = self._span(node, fields, view)
        columns = {number: column for child in below for number, column in child.columns.items()}
        subqueries = dict(self._subqueries(fields, view))
        expressions = Expressions(columns, self._where, span, subqueries)
        values = {id(term): expressions.value(term) for some in fields.values() for term in some}
        rows = merge_volatile(
            *(item.rows for item in below),
            *node_mapping.find_row_volatile(node, fields, values, expressions, columns),
        )
        flow = ColumnFlow(
            node,
            below,
            fields,
            values,
            expressions,
            rows,
            node_mapping.find_function_volatile(node, fields, values, expressions),
        )
        base = Operator(
            number=0,
            node=node.kind,
            text=node.text,
            inputs=tuple(child.operator for child in below),
            columns=tuple(flow.columns()),
            expressions=tuple(values.values()),
            is_streaming=any(child.operator.is_streaming for child in below),
            span=span,
            view=view,
            subqueries=tuple(subquery.operator for subquery in subqueries.values()),
        )
        origin = self._origin(node)
        processor = origin.processor if isinstance(origin, SourceCall) else ""
        context = Context(node, below, fields, values, flow, processor, above, is_complete=self._complete)
        return BuiltOperator(
            node_mapping.specialise_operator(base, context),
            [attribute.id for attribute in node.output],
            flow.windows(),
            rows,
        )

    def _subqueries(
        self, fields: dict[str, list[ParsedExpression]], view: str | None
    ) -> Iterator[tuple[int, BuiltOperator]]:
        """Yield the plans of subqueries in a node's expressions, each with the Python id of its expression."""
        expressions = (expression for some in fields.values() for tree in some for expression in tree.walk())
        for expression in expressions:
            if isinstance(plan := expression.entry.get("plan"), list) and plan:
                yield id(expression), self.build(read_node(expression.java().plan(), iter(plan)), view)

    def _plain_operator(self, node: PlanNode, below: list[BuiltOperator], view: str | None) -> BuiltOperator:
        """Return a plain operator for a node of unknown shape, with its name and columns."""
        rows = merge_volatile(*(child.rows for child in below))
        columns = tuple(replace(plain_column(attribute), volatile=rows) for attribute in node.output)
        operator = Operator(
            number=0,
            node=node.kind,
            text=node.text,
            inputs=tuple(child.operator for child in below),
            columns=columns,
            is_streaming=any(child.operator.is_streaming for child in below),
            span=self._view_span(view),
            view=view,
        )
        return BuiltOperator(operator, [item.id for item in node.output], {}, rows)

    def _rename(self, node: PlanNode, child: PlanNode, view: str | None, above: Conditions) -> BuiltOperator:
        """Return the operators below a node that only names things, with the node's names and ids of columns."""
        result = self.build(child, view, rename_conditions(node, child, above))
        ids = [attribute.id for attribute in node.output]
        if ids == result.ids or len(ids) != len(result.ids):
            return result
        windows = {
            new: result.windows[old]
            for new, old in zip(ids, result.ids, strict=True)
            if old in result.windows
        }
        named = tuple(
            replace(column, name=attribute.name)
            for attribute, column in zip(node.output, result.operator.columns, strict=True)
        )
        return BuiltOperator(replace(result.operator, columns=named), ids, windows, result.rows)

    def _leaf(self, node: PlanNode, view: str | None) -> BuiltOperator:
        streaming = node.is_streaming
        self._leaves += 1
        leaf_read = read_leaf(node, self._leaves)
        source = leaf_read.source
        columns = tuple(
            replace(plain_column(attribute), origins=frozenset({(source, attribute.name)}), is_copied=True)
            if source
            else plain_column(attribute)
            for attribute in node.output
        )
        read = Read(
            number=0,
            node=node.kind,
            text=f"{leaf_read.format} {source}"
            if source and not source.startswith(leaf_read.format)
            else source or leaf_read.format,
            columns=columns,
            is_streaming=streaming,
            span=self._node_span(node)
            or (self._where.span_of_name(source) if source else None)
            or self._view_span(view),
            view=view,
            source=source,
            format=self._where.formats.get(source or "", leaf_read.format),
            options=leaf_read.options,
        )
        return BuiltOperator(read, [attribute.id for attribute in node.output])

    def _source(self, node: PlanNode, name: str) -> BuiltOperator:
        """Return a source of the spec, without its decoding."""
        nodes_below = list(node.walk())
        span = self._where.span_of_name(name)
        streaming = node.is_streaming
        columns = tuple(
            replace(
                plain_column(attribute),
                delay=None,
                origins=frozenset({(name, attribute.name)}),
                is_copied=True,
            )
            for attribute in node.output
        )
        format_ = self._where.formats[name]
        operator: Operator = Read(
            number=0,
            node=nodes_below[-1].kind,
            text=f"{format_} {name}",
            columns=columns,
            is_streaming=streaming,
            span=span,
            source=name,
            format=format_,
        )
        rows: tuple[VolatileExpression, ...] = ()
        for plan_node in reversed(nodes_below):
            if conditions := self._volatile_expectations(plan_node, name):
                rows = merge_volatile(*(volatile for _, volatile in conditions))
                columns = tuple(replace(column, volatile=rows) for column in columns)
                values = tuple(value for value, _ in conditions)
                operator = Operator(**_common_fields(plan_node, operator, columns, span), expressions=values)
            elif plan_node.kind == "EventTimeWatermark":
                event_time = next((column for column in plan_node.output if column.delay is not None), None)
                if event_time and event_time.delay is not None:
                    columns = tuple(
                        replace(column, delay=event_time.delay) if column.name == event_time.name else column
                        for column in columns
                    )
                    operator = WatermarkOperator(
                        **_common_fields(plan_node, operator, columns, self._where.watermark(name) or span),
                        event_time=event_time.name,
                        delay=event_time.delay,
                    )
            elif plan_node.kind in ("Deduplicate", "DeduplicateWithinWatermark"):
                keys = node_mapping.read_deduplication_keys(plan_node, columns)
                within = plan_node.kind != "Deduplicate"
                growth, leaves = growth_of_deduplicate(keys, within=within, every=len(keys) == len(columns))
                operator = Deduplicate(
                    **_common_fields(plan_node, operator, columns, self._where.deduplication(name) or span),
                    growth=growth,
                    leaves=leaves,
                    keys=keys,
                    is_within_watermark=within,
                )
        return BuiltOperator(operator, [item.id for item in node.output], rows=rows)

    def _volatile_expectations(
        self, node: PlanNode, source: str
    ) -> list[tuple[Expression, tuple[VolatileExpression, ...]]]:
        """Return the conditions by which a node drops rows of a source, if another run may drop other rows."""
        conditions = []
        for name, condition in read_expectations(node).items():
            columns = {item.id: plain_column(item) for item in node.output}
            expressions = Expressions(columns, _NOWHERE, self._where.expectation(source, name))
            value = expressions.value(condition)
            if volatile := find_volatile(value, expressions):
                conditions.append((value, volatile))
        return conditions

    def _span(
        self, node: PlanNode, fields: dict[str, list[ParsedExpression]], view: str | None
    ) -> Span | None:
        """Return the operator's place, narrowed to its part of a statement if possible."""
        if isinstance(origin := self._origin(node), SourceCall):
            # A call creates one operator, and no expression locates it better.
            return self._where.call(origin) or self._view_span(view)
        node_span = self._node_span(node)
        part = node_mapping.locating_expression(node, fields)
        if part is not None:
            expressions = Expressions({}, self._where, node_span)
            return expressions.place(part) or self._view_span(view)
        return node_span or self._view_span(view)

    def _node_span(self, node: PlanNode) -> Span | None:
        match self._origin(node):
            case SqlSpan() as stretch:
                return self._where.sql(stretch)
            case SourceCall() as call:
                return self._where.call(call)
            case _:
                return None

    def _origin(self, node: PlanNode) -> SqlSpan | SourceCall | None:
        try:
            return parse(str(node.java.origin().toString()))
        except UNANSWERED:
            return None

    def _view_span(self, view: str | None) -> Span | None:
        return self._where.span_of_name(view) if view else None


def _common_fields(
    node: PlanNode, child: Operator, columns: tuple[Column, ...], span: Span | None
) -> dict[str, Any]:
    return {
        "number": 0,
        "node": node.kind,
        "text": node.text,
        "inputs": (child,),
        "columns": columns,
        "is_streaming": child.is_streaming,
        "span": span,
    }


def _view_name(node: PlanNode) -> str:
    """Return the name of the view that a node reads, in lower case."""
    description = node.fields.get("desc")
    identifier = description.get("identifier") if isinstance(description, dict) else None
    return str(identifier.get("table", "")).lower() if isinstance(identifier, dict) else ""
