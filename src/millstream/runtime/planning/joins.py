"""Joins: their kind, the keys that must be equal, how far apart in time their rows may be, what they keep."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from millstream.analysis.dataflow import Column, Growth, Join
from millstream.runtime.planning import bounds, growth
from millstream.runtime.planning.context import object_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millstream.analysis.dataflow import TimeBound
    from millstream.runtime.planning.context import Context
    from millstream.runtime.planning.expressions import Parsed

_HOW = {
    "Inner": "inner",
    "Cross": "cross",
    "LeftOuter": "left_outer",
    "RightOuter": "right_outer",
    "FullOuter": "full_outer",
    "LeftSemi": "left_semi",
    "LeftAnti": "left_anti",
}


def join(given: dict[str, Any], of: Context) -> Join:
    """The join that a node is; `given` is what it says as any operator does."""
    left, right = (made.columns for made in of.below)
    tree = next(iter(of.fields.get("condition", ())), None)
    pairs = tuple(_equal(tree, of, left, right)) if tree else ()
    bound = bounds.bound(tree, left, right) if tree else None
    both = all(made.operator.streaming for made in of.below)
    bounded, leaves = Growth.KEYS, "nothing is kept: one side is no stream"
    if both:
        bounded, leaves = growth.of_join(left.values(), right.values(), pairs, bound)
    return Join(
        **given,
        growth=bounded,
        leaves=leaves,
        how=_HOW.get(object_of(of.node, "joinType"), object_of(of.node, "joinType").lower()),
        condition=of.value(tree) if tree else None,
        keys=pairs,
        bound=_told(bound, of) if bound else None,
    )


def _told(bound: bounds.Bound, of: Context) -> TimeBound:
    """The bound with the comparisons that set it in words."""
    texts = (of.flow.made.value(one).text for one in bound.parts)
    return replace(bound.bound, text=" AND ".join(texts))


def _equal(
    tree: Parsed, of: Context, left: Mapping[int, Column], right: Mapping[int, Column]
) -> list[tuple[Column, Column]]:
    found = []
    parts = bounds.conjuncts(tree)
    for part in parts:
        if part.kind not in ("EqualTo", "EqualNullSafe") or len(part.inputs) != 2:
            continue
        sides = [_side(one, of, left, right) for one in part.inputs]
        if sides[0] and sides[1] and sides[0][0] != sides[1][0]:
            ordered = sorted((one for one in sides if one), key=lambda one: one[0])
            found.append((ordered[0][1], ordered[1][1]))
    return found


def _side(
    tree: Parsed, of: Context, left: Mapping[int, Column], right: Mapping[int, Column]
) -> tuple[int, Column] | None:
    """Which side's columns an expression reads, and the expression as a column."""
    leaves = [one for one in tree.walk() if one.kind == "AttributeReference"]
    for number, side in enumerate((left, right)):
        if leaves and all(one.id in side for one in leaves):
            if tree.kind == "AttributeReference" and tree.id is not None:
                return number, side[tree.id]
            value = of.flow.made.value(tree)
            origins = frozenset(
                origin for one in leaves for origin in side[-1 if one.id is None else one.id].origins
            )
            return number, Column(value.text, value.type, origins=origins)
    return None
