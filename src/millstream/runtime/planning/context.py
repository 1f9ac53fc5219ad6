"""What an operator of its own class is made from: a node with its expressions and what is below it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from millstream.analysis.dataflow import Expression
    from millstream.runtime.planning.expressions import Parsed
    from millstream.runtime.planning.lineage import Flow, Made
    from millstream.runtime.planning.nodes import Node


@dataclass
class Context:
    """A node under way to its operator."""

    node: Node
    below: Sequence[Made]
    fields: Mapping[str, list[Parsed]]
    values: Mapping[int, Expression]
    flow: Flow
    processor: str
    """The class of the stateful processor that the user gave, where its call was noted."""
    complete: bool

    def value(self, parsed: Parsed) -> Expression:
        """The value of an expression at the top of a field."""
        return self.values[id(parsed)]


def object_of(node: Node, name: str) -> str:
    """`Append` of `{"object": "…InternalOutputModes$Append$"}`."""
    told = node.fields.get(name)
    path = str(told.get("object") or told.get("product-class") or "") if isinstance(told, dict) else ""
    return path.rstrip("$").replace("$", ".").rpartition(".")[2]
