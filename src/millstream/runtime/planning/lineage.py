"""What flows into each column a node gives: sources' columns, unstable expressions, windows."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from millstream.analysis.dataflow import Column
from millstream.runtime.planning.windows import expanded, window

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from millstream.analysis.dataflow import Expression, Operator, TimeWindow, Volatile
    from millstream.runtime.planning.expressions import Expressions, Parsed
    from millstream.runtime.planning.nodes import Attribute, Node


@dataclass
class Made:
    """An operator with what those above it need to follow its columns."""

    operator: Operator
    ids: list[int]
    """The numbers of its columns, in their order."""
    windows: dict[int, TimeWindow] = field(default_factory=dict)
    rows: tuple[Volatile, ...] = ()
    """What decides whether a row exists and is not stable; every column above carries it."""

    @property
    def columns(self) -> dict[int, Column]:
        """Its columns by number."""
        return dict(zip(self.ids, self.operator.columns, strict=True))


def together(*volatile: Iterable[Volatile]) -> tuple[Volatile, ...]:
    """Each once, in order."""
    return tuple(dict.fromkeys(one for some in volatile for one in some))


def flowing(expression: Expression, made: Expressions) -> tuple[Volatile, ...]:
    """What is not stable in an expression or the columns it reads."""
    inside = list(expression.walk())
    own = (made.volatile[id(one)] for one in inside if id(one) in made.volatile)
    return together(own, *(one.column.volatile for one in inside if one.column))


@dataclass
class Flow:
    """One node's columns, from those of the nodes below it."""

    node: Node
    below: Sequence[Made]
    fields: Mapping[str, list[Parsed]]
    values: Mapping[int, Expression]
    """The value of each parsed expression at the top of a field, by its Python identity."""
    made: Expressions
    rows: tuple[Volatile, ...]
    always: tuple[Volatile, ...] = ()
    """What flows into every column that the node makes itself."""

    def columns(self) -> list[Column]:
        """What the node gives."""
        return [self._column(attribute, place) for place, attribute in enumerate(self.node.output)]

    def windows(self) -> dict[int, TimeWindow]:
        """Windows over event time by the number of the column that holds them or a part of them."""
        known = {number: one for made in self.below for number, one in made.windows.items()}
        for place, attribute in enumerate(self.node.output):
            found = self._window(attribute.id, place, known)
            if found:
                known[attribute.id] = found
        kept = {attribute.id for attribute in self.node.output}
        return {number: one for number, one in known.items() if number in kept}

    def _window(self, number: int, place: int, known: Mapping[int, TimeWindow]) -> TimeWindow | None:
        alias = self._aliases().get(number)
        if alias is not None:
            leaf = alias.bare
            while leaf.kind in ("GetStructField", "Cast", "KnownNullable") and leaf.inputs:
                leaf = leaf.inputs[0]
            return known.get(-1 if leaf.id is None else leaf.id) or window(alias)
        if self.node.kind == "Expand" and number not in known:
            return expanded(self._projections(), place)
        sides = [list(made.ids) for made in self.below]
        if number not in known and sides and all(len(side) == len(self.node.output) for side in sides):
            return next((known[side[place]] for side in sides if side[place] in known), None)
        return None

    def _aliases(self) -> dict[int, Parsed]:
        return {
            one.id: one
            for trees in self.fields.values()
            for one in trees
            if one.kind == "Alias" and one.id is not None
        }

    def _column(self, attribute: Attribute, place: int) -> Column:
        below = {number: column for made in self.below for number, column in made.columns.items()}
        alias = self._aliases().get(attribute.id)
        if alias is not None:
            return self._of(
                attribute, [self.values[id(alias)]], copied=alias.bare.kind == "AttributeReference"
            )
        if self.node.kind == "Expand" and (projections := self._projections()):
            values = [self.values[id(one[place])] for one in projections if place < len(one)]
            return self._of(attribute, values, copied=all(one.column for one in values))
        if attribute.id in below and self.node.kind != "Union":
            return self._named(attribute, [below[attribute.id]], copied=True)
        sides = [list(made.operator.columns) for made in self.below]
        if self._positional(sides):
            return self._named(attribute, [side[place] for side in sides], copied=True)
        if self.node.kind == "Generate":
            return self._of(attribute, [self.values[id(one)] for one in self.fields.get("generator", ())])
        return self._named(attribute, list(below.values()), copied=False)

    def _positional(self, sides: Sequence[Sequence[Column]]) -> bool:
        kinds = {"Union", "Intersect", "Except", "View", "SubqueryAlias", "CTERelationRef", "Repartition"}
        return (
            self.node.kind in kinds
            and bool(sides)
            and all(len(side) == len(self.node.output) for side in sides)
        )

    def _projections(self) -> list[list[Parsed]]:
        """The rows that an Expand makes of each row."""
        flat = self.fields.get("projections", [])
        width = len(self.node.output)
        return [flat[start : start + width] for start in range(0, len(flat), width)] if width else []

    def _of(self, attribute: Attribute, values: Sequence[Expression], *, copied: bool = False) -> Column:
        """A column that expressions make."""
        leaves = [one.column for value in values for one in value.walk() if one.column]
        volatile = together(*(flowing(value, self.made) for value in values), self.always, self.rows)
        return self._give(attribute, leaves, volatile, copied=copied)

    def _named(self, attribute: Attribute, columns: Sequence[Column], *, copied: bool) -> Column:
        """A column that comes from those below; `copied` when as it is."""
        volatile = together(*(one.volatile for one in columns), () if copied else self.always, self.rows)
        return self._give(attribute, columns, volatile, copied=copied)

    def _give(
        self, attribute: Attribute, leaves: Sequence[Column], volatile: tuple[Volatile, ...], *, copied: bool
    ) -> Column:
        origins = frozenset(origin for one in leaves for origin in one.origins)
        same = copied and len(origins) == 1 and all(one.copied for one in leaves) and bool(leaves)
        return replace(bare(attribute), volatile=volatile, origins=origins, copied=same)


def bare(attribute: Attribute) -> Column:
    """A column of which nothing is known but what Spark says of it."""
    return Column(attribute.name, attribute.type, attribute.nullable, attribute.delay)
