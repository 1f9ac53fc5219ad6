"""Read a join's type, its equality keys, its time bounds and the growth of its state."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from millstream.analysis.query.plan_model import Column, Growth, Join
from millstream.checking.query_plan import state_growth
from millstream.checking.query_plan.build_context import object_name
from millstream.checking.query_plan.expressions import join_time_bounds
from millstream.checking.query_plan.pushed_conditions import INNER, select_conditions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millstream.analysis.query.plan_model import TimeBound
    from millstream.checking.query_plan.build_context import Context
    from millstream.checking.query_plan.expressions.expressions import ParsedExpression

_HOW = {
    "Inner": "inner",
    "Cross": "cross",
    "LeftOuter": "left_outer",
    "RightOuter": "right_outer",
    "FullOuter": "full_outer",
    "LeftSemi": "left_semi",
    "LeftAnti": "left_anti",
}


def build_join(common_fields: dict[str, Any], of: Context) -> Join:
    """Return the join of a node. `common_fields` are the fields that every operator has."""
    left, right = (side.columns for side in of.below)
    tree = next(iter(of.fields.get("condition", ())), None)
    parts = list(join_time_bounds.split_conjuncts(tree)) if tree else []
    if object_name(of.node, "joinType") in INNER:
        parts += select_conditions(of.above, (*left, *right))
    pairs = tuple(_key_pairs(parts, of, left, right))
    bound = join_time_bounds.find_bound(parts, left, right)
    is_stream_stream = all(side.operator.is_streaming for side in of.below)
    bounded, leaves = Growth.KEYS, "no state: one side is not a stream"
    if is_stream_stream:
        bounded, leaves = state_growth.growth_of_join(left.values(), right.values(), pairs, bound)
    return Join(
        **common_fields,
        growth=bounded,
        leaves=leaves,
        how=_HOW.get(object_name(of.node, "joinType"), object_name(of.node, "joinType").lower()),
        condition=of.value(tree) if tree else None,
        keys=pairs,
        bound=_with_text(bound, of) if bound else None,
    )


def _with_text(bound: join_time_bounds.JoinBound, of: Context) -> TimeBound:
    """Return the bound with the text of the comparisons that set it."""
    texts = (of.flow.expressions.value(part).text for part in bound.parts)
    return replace(bound.bound, text=" AND ".join(texts))


def _key_pairs(
    parts: list[ParsedExpression], of: Context, left: Mapping[int, Column], right: Mapping[int, Column]
) -> list[tuple[Column, Column]]:
    pairs = []
    for part in parts:
        if part.kind not in ("EqualTo", "EqualNullSafe") or len(part.inputs) != 2:
            continue
        sides = [_side(side, of, left, right) for side in part.inputs]
        if sides[0] and sides[1] and sides[0][0] != sides[1][0]:
            ordered = sorted((side for side in sides if side), key=lambda side: side[0])
            pairs.append((ordered[0][1], ordered[1][1]))
    return pairs


def _side(
    tree: ParsedExpression, of: Context, left: Mapping[int, Column], right: Mapping[int, Column]
) -> tuple[int, Column] | None:
    """Return the side whose columns an expression reads, 0 or 1, and the expression as a column."""
    leaves = [leaf for leaf in tree.walk() if leaf.kind == "AttributeReference"]
    for number, side in enumerate((left, right)):
        if leaves and all(leaf.id in side for leaf in leaves):
            if tree.kind == "AttributeReference" and tree.id is not None:
                return number, side[tree.id]
            value = of.flow.expressions.value(tree)
            origins = frozenset(
                origin for leaf in leaves for origin in side[-1 if leaf.id is None else leaf.id].origins
            )
            return number, Column(value.text, value.type, origins=origins)
    return None
