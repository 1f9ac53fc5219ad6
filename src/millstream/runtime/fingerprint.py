"""What a query does, operator by operator, as text that two versions can be compared by."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from millstream.checkpoint.record import Operator

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_IDS = re.compile(r"#\d+L?")
# Spark numbers each watermark anew whenever a plan is made.
_WATERMARK = re.compile(r"(?<=EventTimeWatermark )[0-9a-f]{8}-[0-9a-f-]{27}, ")
# Options of a source stand in its leaf's text; the record's `sources` tell of them, without secrets.
_LEAF = re.compile(r"^(Streaming\w*|Relation|LogicalRDD|DataSourceV2Relation)\b.*", re.DOTALL)
_LONGEST = 100_000


def operators(frame: DataFrame) -> tuple[Operator, ...]:
    """The operators of a DataFrame's analysed plan, from the top, without those that only name things."""
    plan = frame._jdf.queryExecution().analyzed()
    found: list[Operator] = []
    _walk(plan, found)
    return tuple(found)


def _walk(node: Any, found: list[Operator]) -> None:
    kind = str(node.nodeName())
    if kind not in ("SubqueryAlias", "View"):
        found.append(Operator(kind=kind, text=_text(node, kind), shape=_text(node.canonicalized(), kind)))
    children = node.children()
    for index in range(children.size()):
        _walk(children.apply(index), found)


def _text(node: Any, kind: str) -> str:
    """One operator in Spark's words, without expression ids; of a leaf only its kind."""
    said = _WATERMARK.sub("", _IDS.sub("", str(node.simpleString(_LONGEST))))
    return _LEAF.sub(kind, said)
