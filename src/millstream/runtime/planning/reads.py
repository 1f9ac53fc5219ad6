"""Leaves of a plan: which source a query reads there, with which reader and options, secrets left out."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from millstream.runtime.assemble import SOURCE_OPTION
from millstream.runtime.planning.nodes import UNANSWERED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millstream.runtime.planning.nodes import Node

_SECRET = re.compile(r"secret|passw|token|access[._-]?key|jaas|credential|private|sas|auth", re.IGNORECASE)
_LOGIN = re.compile(r"//[^/@\s]*@")
_LOGIN_FIELD = re.compile(r"(?i)([?&;](?:password|user|token|secret)[^=&;]*=)[^&;]*")
_BETWEEN = "\u0000"


@dataclass(frozen=True)
class Leaf:
    """What a leaf tells of itself."""

    source: str | None
    format: str
    options: Mapping[str, str] = field(default_factory=dict)


def leaf(node: Node, number: int) -> Leaf:
    """What a leaf reads; `number` names a source that nobody has named."""
    try:
        format_, told = _asked(node)
    except (*UNANSWERED, AttributeError, TypeError):
        # A leaf of another shape than Spark's own, such as a connector's.
        format_, told = node.kind, {}
    name = told.pop(SOURCE_OPTION, None) or told.pop(SOURCE_OPTION.lower(), None) or _given(node)
    if name is None and node.kind not in _ROWS:
        name = f"{format_} {number}"
    return Leaf(name, format_, {key: _clean(value) for key, value in told.items() if not _SECRET.search(key)})


_ROWS = {"LocalRelation", "LogicalRDD", "OneRowRelation", "Range", "ExternalRDD"}


def _asked(node: Node) -> tuple[str, dict[str, str]]:
    java = node.java
    match node.kind:
        case "StreamingRelation":
            source = java.dataSource()
            return str(source.className()), _scala(source.options())
        case "StreamingRelationV2":
            return str(java.sourceName()), dict(java.extraOptions().asCaseSensitiveMap())
        case "LogicalRelation":
            relation = java.relation()
            if not hasattr(relation, "fileFormat"):
                return str(relation.getClass().getSimpleName()), {}
            return str(relation.fileFormat().toString()).lower(), _scala(relation.options())
        case "DataSourceV2Relation" | "StreamingDataSourceV2Relation":
            return str(java.table().name()), dict(java.options().asCaseSensitiveMap())
        case kind if kind in _ROWS:
            return "rows", {}
        case kind:
            return kind, {}


def _scala(options: Any) -> dict[str, str]:
    told = str(options.mkString(_BETWEEN))
    pairs = (part.partition(" -> ") for part in told.split(_BETWEEN) if part)
    return {key: value for key, _, value in pairs}


def _given(node: Node) -> str | None:
    """The name given by `DataStreamReader.name`."""
    told = node.fields.get("sourceIdentifyingName")
    return str(told["name"]) if isinstance(told, dict) and told.get("name") else None


def _clean(value: str) -> str:
    """A value without the login of an address."""
    return _LOGIN_FIELD.sub(r"\1…", _LOGIN.sub("//", str(value)))
