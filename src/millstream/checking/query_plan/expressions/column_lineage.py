"""Trace each output column of a node to source columns, unstable expressions and time windows."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from millstream.analysis.query.plan_model import Column
from millstream.checking.query_plan.expressions.time_windows import read_sliding_window, read_window

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from millstream.analysis.query.plan_model import Expression, Operator, TimeWindow, VolatileExpression
    from millstream.checking.query_plan.expressions.expressions import Expressions, ParsedExpression
    from millstream.checking.query_plan.plan_nodes import Attribute, PlanNode


@dataclass
class BuiltOperator:
    """An operator with the ids, windows and row conditions that the operators above it need."""

    operator: Operator
    ids: list[int]
    """The ids of its columns, in their order."""
    windows: dict[int, TimeWindow] = field(default_factory=dict)
    rows: tuple[VolatileExpression, ...] = ()
    """Unstable values that decide whether a row exists. They affect every column of the operators above."""

    @property
    def columns(self) -> dict[int, Column]:
        """Its columns by id."""
        return dict(zip(self.ids, self.operator.columns, strict=True))

    @property
    def volatile(self) -> tuple[VolatileExpression, ...]:
        """All unstable values that affect its rows."""
        return merge_volatile(self.rows, *(column.volatile for column in self.operator.columns))


def merge_volatile(*volatile: Iterable[VolatileExpression]) -> tuple[VolatileExpression, ...]:
    """Return all values in order, without duplicates."""
    return tuple(dict.fromkeys(value for values in volatile for value in values))


def find_volatile(expression: Expression, expressions: Expressions) -> tuple[VolatileExpression, ...]:
    """Return the unstable values in an expression and in the columns that it reads."""
    parts = list(expression.walk())
    own_volatile = (expressions.volatile[id(part)] for part in parts if id(part) in expressions.volatile)
    return merge_volatile(own_volatile, *(part.column.volatile for part in parts if part.column))


@dataclass
class ColumnFlow:
    """Derives a node's columns from those of the nodes below it."""

    node: PlanNode
    below: Sequence[BuiltOperator]
    fields: Mapping[str, list[ParsedExpression]]
    values: Mapping[int, Expression]
    """The value of each top-level expression of a field, by the expression's Python id."""
    expressions: Expressions
    rows: tuple[VolatileExpression, ...]
    always: tuple[VolatileExpression, ...] = ()
    """Unstable values that affect every column that the node creates."""

    def columns(self) -> list[Column]:
        """Return the node's columns."""
        return [self._column(attribute, place) for place, attribute in enumerate(self.node.output)]

    def windows(self) -> dict[int, TimeWindow]:
        """Return the event-time windows by the id of the column that contains the window or a part of it."""
        known = {number: time_window for node in self.below for number, time_window in node.windows.items()}
        for place, attribute in enumerate(self.node.output):
            window_ = self._window(attribute.id, place, known)
            if window_:
                known[attribute.id] = window_
        output_ids = {attribute.id for attribute in self.node.output}
        return {number: item for number, item in known.items() if number in output_ids}

    def _window(self, number: int, place: int, known: Mapping[int, TimeWindow]) -> TimeWindow | None:
        alias = self._aliases().get(number)
        if alias is not None:
            leaf = alias.bare
            while leaf.kind in ("GetStructField", "Cast", "KnownNullable") and leaf.inputs:
                leaf = leaf.inputs[0]
            return known.get(-1 if leaf.id is None else leaf.id) or read_window(alias)
        if self.node.kind == "Expand" and number not in known:
            return read_sliding_window(self._projections(), place)
        sides = [list(node.ids) for node in self.below]
        if number not in known and sides and all(len(side) == len(self.node.output) for side in sides):
            return next((known[side[place]] for side in sides if side[place] in known), None)
        return None

    def _aliases(self) -> dict[int, ParsedExpression]:
        return {
            parsed.id: parsed
            for trees in self.fields.values()
            for parsed in trees
            if parsed.kind == "Alias" and parsed.id is not None
        }

    def _column(self, attribute: Attribute, place: int) -> Column:
        below = {number: column for node in self.below for number, column in node.columns.items()}
        alias = self._aliases().get(attribute.id)
        if alias is not None:
            return self._of(
                attribute, [self.values[id(alias)]], copied=alias.bare.kind == "AttributeReference"
            )
        if self.node.kind == "Expand" and (projections := self._projections()):
            values = [self.values[id(terms[place])] for terms in projections if place < len(terms)]
            return self._of(attribute, values, copied=all(expression.column for expression in values))
        if attribute.id in below and self.node.kind != "Union":
            return self._derive_column(attribute, [below[attribute.id]], copied=True)
        sides = [list(node.operator.columns) for node in self.below]
        if self._is_positional(sides):
            return self._derive_column(attribute, [side[place] for side in sides], copied=True)
        if self.node.kind == "Generate":
            return self._of(attribute, [self.values[id(term)] for term in self.fields.get("generator", ())])
        return self._derive_column(attribute, list(below.values()), copied=False)

    def _is_positional(self, sides: Sequence[Sequence[Column]]) -> bool:
        kinds = {"Union", "Intersect", "Except", "View", "SubqueryAlias", "CTERelationRef", "Repartition"}
        return (
            self.node.kind in kinds
            and bool(sides)
            and all(len(side) == len(self.node.output) for side in sides)
        )

    def _projections(self) -> list[list[ParsedExpression]]:
        """Return the rows that an Expand creates from each row."""
        flat = self.fields.get("projections", [])
        width = len(self.node.output)
        return [flat[start : start + width] for start in range(0, len(flat), width)] if width else []

    def _of(self, attribute: Attribute, values: Sequence[Expression], *, copied: bool = False) -> Column:
        """Return a column that expressions compute."""
        leaves = [part.column for value in values for part in value.walk() if part.column]
        volatile = merge_volatile(
            *(find_volatile(value, self.expressions) for value in values), self.always, self.rows
        )
        return self._give(attribute, leaves, volatile, copied=copied)

    def _derive_column(self, attribute: Attribute, columns: Sequence[Column], *, copied: bool) -> Column:
        """Return a column derived from columns below. `is_copied` is true if it is unchanged."""
        volatile = merge_volatile(
            *(column.volatile for column in columns), () if copied else self.always, self.rows
        )
        return self._give(attribute, columns, volatile, copied=copied)

    def _give(
        self,
        attribute: Attribute,
        leaves: Sequence[Column],
        volatile: tuple[VolatileExpression, ...],
        *,
        copied: bool,
    ) -> Column:
        origins = frozenset(origin for leaf in leaves for origin in leaf.origins)
        is_unchanged = (
            copied and len(origins) == 1 and all(leaf.is_copied for leaf in leaves) and bool(leaves)
        )
        return replace(plain_column(attribute), volatile=volatile, origins=origins, is_copied=is_unchanged)


def plain_column(attribute: Attribute) -> Column:
    """Return a column with only Spark's own description of it."""
    return Column(attribute.name, attribute.type, attribute.is_nullable, attribute.delay)
