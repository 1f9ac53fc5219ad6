"""Conditions of filters that Spark adds to the joins below them, as `PushDownPredicates` does."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from millstream.analysis.query.plan_model import Stability
from millstream.checking.query_plan.build_context import object_name
from millstream.checking.query_plan.expressions.expressions import parse_fields, stability_of
from millstream.checking.query_plan.expressions.join_time_bounds import split_conjuncts
from millstream.checking.query_plan.plan_nodes import UNKNOWN_SHAPE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from millstream.checking.query_plan.expressions.expressions import ParsedExpression
    from millstream.checking.query_plan.plan_nodes import PlanNode

    Conditions = tuple[ParsedExpression, ...]

# Joins that a filter above becomes a part of.
INNER = ("Inner", "Cross")
# For each other join the side whose columns a filter above may test before the join.
_PRESERVED_SIDE = {"LeftOuter": 0, "LeftSemi": 0, "LeftAnti": 0, "RightOuter": 1}
# Spark moves no condition below one of them. A stream has the time of its batch as such a value.
_NONDETERMINISTIC = {Stability.UNSTABLE, Stability.BATCH, Stability.PARTITION}
# The optimiser replaces them by a literal first.
_LITERALS = {"Now", "CurrentTime"}


def push_conditions(node: PlanNode, above: Conditions) -> list[Conditions]:
    """Return for each child of a node the conditions that its rows meet or are dropped for.

    `above` are those on the node's own rows. Conditions pass through filters, deterministic projections and
    generators, and inner joins; an outer join lets those on its complete side pass.
    """
    nothing: list[Conditions] = [() for _ in node.children]
    if node.kind not in ("Filter", "Project", "Generate", "Join"):
        return nothing
    if node.kind in ("Project", "Generate") and not above:
        return nothing
    try:
        fields = parse_fields(node.fields, node.java)
        if node.kind == "Filter":
            return [_push_through_filter(fields["condition"], above)]
        if node.kind == "Project":
            return [_push_through_projection(fields["projectList"], above)]
        if node.kind == "Generate":
            return [_push_through_generator(node, fields["generator"], above)]
        return _push_through_join(node, fields.get("condition", ()), above)
    except UNKNOWN_SHAPE:
        return nothing


def rename_conditions(node: PlanNode, child: PlanNode, above: Conditions) -> Conditions:
    """Return conditions on a node that only names things as conditions on the node below, whose ids may differ."""
    if not above or len(node.output) != len(child.output):
        return ()
    ids = {outer.id: inner.id for outer, inner in zip(node.output, child.output, strict=True)}
    return tuple(_rename(condition, ids) for condition in above if _column_ids(condition) <= ids.keys())


def select_conditions(conditions: Iterable[ParsedExpression], ids: Iterable[int]) -> Conditions:
    """Return the conditions that need no other columns than those with these ids."""
    known = set(ids)
    return tuple(condition for condition in conditions if _column_ids(condition) <= known)


def _push_through_filter(condition: Iterable[ParsedExpression], above: Conditions) -> Conditions:
    parts = [part for tree in condition for part in split_conjuncts(tree)]
    own = tuple(part for part in parts if not _is_nondeterministic(part))
    return (*above, *own) if len(own) == len(parts) else own


def _push_through_generator(
    node: PlanNode, generator: Iterable[ParsedExpression], above: Conditions
) -> Conditions:
    if any(map(_is_nondeterministic, generator)):
        return ()
    return select_conditions(above, (attribute.id for attribute in node.children[0].output))


def _push_through_projection(columns: list[ParsedExpression], above: Conditions) -> Conditions:
    if any(map(_is_nondeterministic, columns)):
        return ()
    definitions = {column.id: column.bare for column in columns if column.id is not None}
    return tuple(
        _substitute(condition, definitions)
        for condition in above
        if _column_ids(condition) <= definitions.keys()
    )


def _push_through_join(
    node: PlanNode, condition: Iterable[ParsedExpression], above: Conditions
) -> list[Conditions]:
    kind = object_name(node, "joinType")
    sides = [[attribute.id for attribute in child.output] for child in node.children]
    if kind in INNER:
        parts = (*above, *(part for tree in condition for part in split_conjuncts(tree)))
        return [select_conditions(parts, ids) for ids in sides]
    preserved = _PRESERVED_SIDE.get(kind)
    return [select_conditions(above, ids) if side == preserved else () for side, ids in enumerate(sides)]


def _is_nondeterministic(tree: ParsedExpression) -> bool:
    return any(
        part.kind not in _LITERALS and stability_of(part, ()) in _NONDETERMINISTIC for part in tree.walk()
    )


def _column_ids(condition: ParsedExpression) -> set[int]:
    """Return the ids of the columns of a condition, -1 for one without."""
    return {
        -1 if part.id is None else part.id for part in condition.walk() if part.kind == "AttributeReference"
    }


def _substitute(tree: ParsedExpression, definitions: Mapping[int, ParsedExpression]) -> ParsedExpression:
    if tree.kind == "AttributeReference" and tree.id is not None:
        return definitions[tree.id]
    return replace(tree, inputs=[_substitute(part, definitions) for part in tree.inputs])


def _rename(tree: ParsedExpression, ids: Mapping[int, int]) -> ParsedExpression:
    if tree.kind == "AttributeReference" and tree.id is not None:
        identifier = {**tree.entry["exprId"], "id": ids[tree.id]}
        return replace(tree, entry={**tree.entry, "exprId": identifier})
    return replace(tree, inputs=[_rename(part, ids) for part in tree.inputs])
