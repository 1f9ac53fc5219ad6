"""Read the leaves of a plan: the source, its format and its options without secrets."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from millstream.checking.query_plan.plan_nodes import UNANSWERED
from millstream.frames.build_views import SOURCE_OPTION

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millstream.checking.query_plan.plan_nodes import PlanNode

_SECRET = re.compile(r"secret|passw|token|access[._-]?key|jaas|credential|private|sas|auth", re.IGNORECASE)
_LOGIN = re.compile(r"//[^/@\s]*@")
_LOGIN_FIELD = re.compile(r"(?i)([?&;](?:password|user|token|secret)[^=&;]*=)[^&;]*")
_BETWEEN = "\u0000"


@dataclass(frozen=True)
class LeafSource:
    """The source that a leaf reads."""

    source: str | None
    format: str
    options: Mapping[str, str] = field(default_factory=dict)


def read_leaf(node: PlanNode, number: int) -> LeafSource:
    """Return the source that a leaf reads. `number` is used for the name of an unnamed source."""
    try:
        format_, options = _format_and_options(node)
    except (*UNANSWERED, AttributeError, TypeError):
        # The leaf has another shape than Spark's own, for example a connector's.
        format_, options = node.kind, {}
    name = options.pop(SOURCE_OPTION, None) or options.pop(SOURCE_OPTION.lower(), None) or _given_name(node)
    if name is None and node.kind not in _ROWS:
        name = f"{format_} {number}"
    return LeafSource(
        name,
        format_,
        {key: _without_login(value) for key, value in options.items() if not _SECRET.search(key)},
    )


_ROWS = {"LocalRelation", "LogicalRDD", "OneRowRelation", "Range", "ExternalRDD"}


def _format_and_options(node: PlanNode) -> tuple[str, dict[str, str]]:
    java = node.java
    match node.kind:
        case "StreamingRelation":
            source = java.dataSource()
            return str(source.className()), _scala_map(source.options())
        case "StreamingRelationV2":
            return str(java.sourceName()), dict(java.extraOptions().asCaseSensitiveMap())
        case "LogicalRelation":
            relation = java.relation()
            if not hasattr(relation, "fileFormat"):
                return str(relation.getClass().getSimpleName()), {}
            return str(relation.fileFormat().toString()).lower(), _scala_map(relation.options())
        case "DataSourceV2Relation" | "StreamingDataSourceV2Relation":
            return str(java.table().name()), dict(java.options().asCaseSensitiveMap())
        case kind if kind in _ROWS:
            return "rows", {}
        case kind:
            return kind, {}


def _scala_map(options: Any) -> dict[str, str]:
    text = str(options.mkString(_BETWEEN))
    pairs = (part.partition(" -> ") for part in text.split(_BETWEEN) if part)
    return {key: value for key, _, value in pairs}


def _given_name(node: PlanNode) -> str | None:
    """Return the name that `DataStreamReader.name` set."""
    identifier = node.fields.get("sourceIdentifyingName")
    return str(identifier["name"]) if isinstance(identifier, dict) and identifier.get("name") else None


def _without_login(value: str) -> str:
    """Return a value without the login of an address."""
    return _LOGIN_FIELD.sub(r"\1…", _LOGIN.sub("//", str(value)))
