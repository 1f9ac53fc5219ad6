"""Operators from the nodes of Spark's analysed plan."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from millstream.analysis.dataflow import Deduplicate, Operator, Read, Watermark
from millstream.runtime.planning import shapes
from millstream.runtime.planning.context import Context
from millstream.runtime.planning.expressions import Expressions, trees
from millstream.runtime.planning.growth import of_deduplicate
from millstream.runtime.planning.lineage import Flow, Made, bare, together
from millstream.runtime.planning.nodes import UNANSWERED, UNKNOWN_SHAPE, Node, nodes, read
from millstream.runtime.planning.places import Call, Stretch, Where, parse
from millstream.runtime.planning.reads import leaf
from millstream.spec.mode import OutputMode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame

    from millstream.analysis.dataflow import Column
    from millstream.diagnostics.finding import Span
    from millstream.runtime.planning.expressions import Parsed

_NOWHERE = Where()
# The names of metrics of ours begin so.
OURS = "millstream:"
# Nodes that only name things.
_NAMES = {"SubqueryAlias", "View", "WithCTE", "CTERelationDef", "CTERelationRef", "ResolvedHint"}


def operators(frame: DataFrame, where: Where = _NOWHERE, mode: OutputMode | None = None) -> Operator:
    """What a DataFrame does, from Spark's analysed plan, with the root on top.

    `where` tells places and names; `mode` is the query's output mode, which decides what leaves state. Nodes
    that only name things (aliases, views, CTEs) are left out; a source of the spec is its Read with its
    watermark and deduplication, without how its bytes are decoded. Whatever is not understood becomes a plain
    `Operator` or `Expression`. Runs no job.
    """
    builder = _Builder(where, complete=mode is OutputMode.COMPLETE)
    return _numbered(builder.build(nodes(frame), None).operator, iter(range(1_000_000)))


def _numbered(operator: Operator, numbers: Iterator[int]) -> Operator:
    number = next(numbers)
    inputs = tuple(_numbered(one, numbers) for one in operator.inputs)
    subqueries = tuple(_numbered(one, numbers) for one in operator.subqueries)
    return replace(operator, number=number, inputs=inputs, subqueries=subqueries)


class _Builder:
    """One pass over a plan, from its leaves to its top."""

    def __init__(self, where: Where, *, complete: bool) -> None:
        self._where = where
        self._complete = complete
        self._leaves = 0
        self._shared: dict[object, Node] = {}
        # Spark keeps the names of temporary views in lower case.
        self._known = {name.lower(): name for name in (*where.formats, *where.views)}

    def build(self, node: Node, view: str | None) -> Made:
        """A node and all below it; `view` is the view they belong to."""
        if node.kind == "WithCTE":
            for one in node.children[:-1]:
                self._shared[one.fields.get("id")] = one.children[0]
            return self.build(node.children[-1], view)
        if node.kind == "CTERelationRef" and node.fields.get("cteId") in self._shared:
            return self._renamed(node, self.build(self._shared[node.fields["cteId"]], view))
        if node.kind == "View" and (name := self._known.get(_viewed(node))):
            if name in self._where.formats:
                return self._source(node, name)
            return self._renamed(node, self.build(node.children[0], name))
        if node.kind == "CollectMetrics" and str(node.fields.get("name", "")).startswith(OURS):
            # It counts rows in passing, and no row depends on it.
            return self._renamed(node, self.build(node.children[0], view))
        if node.kind in _NAMES and len(node.children) == 1:
            return self._renamed(node, self.build(node.children[0], view))
        if not node.children:
            return self._leaf(node, view)
        below = [self.build(one, view) for one in node.children]
        try:
            return self._operator(node, below, view)
        except UNKNOWN_SHAPE:
            # A plan is read for advice: what cannot be understood must not keep a pipeline from its check.
            return self._plain(node, below, view)

    def _operator(self, node: Node, below: list[Made], view: str | None) -> Made:
        fields = trees(node.fields, node.java)
        span = self._span(node, fields, view)
        columns = {number: column for made in below for number, column in made.columns.items()}
        made = Expressions(columns, self._where, span)
        values = {id(one): made.value(one) for some in fields.values() for one in some}
        rows = together(*(one.rows for one in below), *shapes.deciding(node, fields, values, made, columns))
        flow = Flow(node, below, fields, values, made, rows, shapes.always(node, fields, values, made))
        base = Operator(
            number=0,
            node=node.kind,
            text=node.text,
            inputs=tuple(one.operator for one in below),
            columns=tuple(flow.columns()),
            expressions=tuple(values.values()),
            streaming=any(one.operator.streaming for one in below),
            span=span,
            view=view,
            subqueries=tuple(self._subqueries(fields, view)),
        )
        origin = self._origin(node)
        processor = origin.processor if isinstance(origin, Call) else ""
        context = Context(node, below, fields, values, flow, processor, complete=self._complete)
        return Made(shapes.shaped(base, context), [one.id for one in node.output], flow.windows(), rows)

    def _subqueries(self, fields: dict[str, list[Parsed]], view: str | None) -> Iterator[Operator]:
        """The plans of subqueries in a node's expressions."""
        inside = (one for some in fields.values() for tree in some for one in tree.walk())
        for one in inside:
            if isinstance(told := one.entry.get("plan"), list) and told:
                yield self.build(read(one.java().plan(), iter(told)), view).operator

    def _plain(self, node: Node, below: list[Made], view: str | None) -> Made:
        """A node of which only its name and columns are understood."""
        rows = together(*(one.rows for one in below))
        columns = tuple(replace(bare(one), volatile=rows) for one in node.output)
        operator = Operator(
            number=0,
            node=node.kind,
            text=node.text,
            inputs=tuple(one.operator for one in below),
            columns=columns,
            streaming=any(one.operator.streaming for one in below),
            span=self._home(view),
            view=view,
        )
        return Made(operator, [one.id for one in node.output], {}, rows)

    def _renamed(self, node: Node, made: Made) -> Made:
        """What a node that only names things gives: the same columns, perhaps with other numbers."""
        ids = [one.id for one in node.output]
        if ids == made.ids or len(ids) != len(made.ids):
            return made
        windows = {
            new: made.windows[old] for new, old in zip(ids, made.ids, strict=True) if old in made.windows
        }
        named = tuple(
            replace(column, name=one.name)
            for one, column in zip(node.output, made.operator.columns, strict=True)
        )
        return Made(replace(made.operator, columns=named), ids, windows, made.rows)

    def _leaf(self, node: Node, view: str | None) -> Made:
        streaming = node.streaming
        self._leaves += 1
        told = leaf(node, self._leaves)
        source = told.source
        columns = tuple(
            replace(bare(one), origins=frozenset({(source, one.name)}), copied=True) if source else bare(one)
            for one in node.output
        )
        read = Read(
            number=0,
            node=node.kind,
            text=f"{told.format} {source}"
            if source and not source.startswith(told.format)
            else source or told.format,
            columns=columns,
            streaming=streaming,
            span=self._placed(node) or (self._where.named(source) if source else None) or self._home(view),
            view=view,
            source=source,
            format=self._where.formats.get(source or "", told.format),
            options=told.options,
        )
        return Made(read, [one.id for one in node.output])

    def _source(self, node: Node, name: str) -> Made:
        """A source of the spec, without its decoding."""
        inside = list(node.walk())
        span = self._where.named(name)
        streaming = node.streaming
        columns = tuple(
            replace(bare(one), delay=None, origins=frozenset({(name, one.name)}), copied=True)
            for one in node.output
        )
        format_ = self._where.formats[name]
        made: Operator = Read(
            number=0,
            node=inside[-1].kind,
            text=f"{format_} {name}",
            columns=columns,
            streaming=streaming,
            span=span,
            source=name,
            format=format_,
        )
        for one in reversed(inside):
            if one.kind == "EventTimeWatermark":
                marked = next((column for column in one.output if column.delay is not None), None)
                if marked and marked.delay is not None:
                    columns = tuple(
                        replace(column, delay=marked.delay) if column.name == marked.name else column
                        for column in columns
                    )
                    made = Watermark(
                        **_above(one, made, columns, self._where.watermark(name) or span),
                        event_time=marked.name,
                        delay=marked.delay,
                    )
            elif one.kind in ("Deduplicate", "DeduplicateWithinWatermark"):
                keys = shapes.named_keys(one, columns)
                within = one.kind != "Deduplicate"
                growth, leaves = of_deduplicate(keys, within=within, every=len(keys) == len(columns))
                made = Deduplicate(
                    **_above(one, made, columns, self._where.deduplication(name) or span),
                    growth=growth,
                    leaves=leaves,
                    keys=keys,
                    within_watermark=within,
                )
        return Made(made, [one.id for one in node.output])

    def _span(self, node: Node, fields: dict[str, list[Parsed]], view: str | None) -> Span | None:
        """The operator's place; of a whole statement the part that makes the operator, where it has one."""
        if isinstance(origin := self._origin(node), Call):
            # A call makes one operator, and none of its expressions says better where it is.
            return self._where.call(origin) or self._home(view)
        whole = self._placed(node)
        part = shapes.telling(node, fields)
        if part is not None:
            made = Expressions({}, self._where, whole)
            return made.place(part) or self._home(view)
        return whole or self._home(view)

    def _placed(self, node: Node) -> Span | None:
        match self._origin(node):
            case Stretch() as stretch:
                return self._where.sql(stretch)
            case Call() as call:
                return self._where.call(call)
            case _:
                return None

    def _origin(self, node: Node) -> Stretch | Call | None:
        try:
            return parse(str(node.java.origin().toString()))
        except UNANSWERED:
            return None

    def _home(self, view: str | None) -> Span | None:
        return self._where.named(view) if view else None


def _above(node: Node, made: Operator, columns: tuple[Column, ...], span: Span | None) -> dict[str, Any]:
    return {
        "number": 0,
        "node": node.kind,
        "text": node.text,
        "inputs": (made,),
        "columns": columns,
        "streaming": made.streaming,
        "span": span,
    }


def _viewed(node: Node) -> str:
    """The name of the view that a node reads, in lower case."""
    told = node.fields.get("desc")
    identifier = told.get("identifier") if isinstance(told, dict) else None
    return str(identifier.get("table", "")).lower() if isinstance(identifier, dict) else ""
