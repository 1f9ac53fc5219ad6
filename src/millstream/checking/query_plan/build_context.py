"""The context from which an operator is built: a plan node, its expressions and the operators below it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from millstream.analysis.query.plan_model import Expression
    from millstream.checking.query_plan.expressions.column_lineage import BuiltOperator, ColumnFlow
    from millstream.checking.query_plan.expressions.expressions import ParsedExpression
    from millstream.checking.query_plan.plan_nodes import PlanNode


@dataclass
class Context:
    """A plan node with all that is needed to build its operator."""

    node: PlanNode
    below: Sequence[BuiltOperator]
    fields: Mapping[str, list[ParsedExpression]]
    values: Mapping[int, Expression]
    flow: ColumnFlow
    processor: str
    """The class of the user's stateful processor, if its call was noted."""
    above: tuple[ParsedExpression, ...]
    """Conditions of filters above, which Spark adds to that of an inner join."""
    is_complete: bool

    def value(self, parsed: ParsedExpression) -> Expression:
        """Return the value of a top-level expression of a field."""
        return self.values[id(parsed)]


def object_name(node: PlanNode, name: str) -> str:
    """Return `Append` for `{"object": "…InternalOutputModes$Append$"}`."""
    value = node.fields.get(name)
    path = str(value.get("object") or value.get("product-class") or "") if isinstance(value, dict) else ""
    return path.rstrip("$").replace("$", ".").rpartition(".")[2]
