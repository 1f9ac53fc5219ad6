"""Describe what a query does, operator by operator, as text by which two versions can be compared."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from millstream.checkpoint.metadata import RecordedOperator
from millstream.spark import internals

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_IDS = re.compile(r"#\d+L?")
# Spark gives each watermark a new id whenever a plan is made.
_WATERMARK = re.compile(r"(?<=EventTimeWatermark )[0-9a-f]{8}-[0-9a-f-]{27}, ")
# A leaf's text contains the options of its source. The record's `sources` describe them without secrets.
_LEAF = re.compile(r"^(Streaming\w*|Relation|LogicalRDD|DataSourceV2Relation)\b.*", re.DOTALL)
_MAX_CHARACTERS = 100_000


def list_operators(frame: DataFrame) -> tuple[RecordedOperator, ...]:
    """List the operators of a DataFrame's analysed plan from the top, without those that only name things."""
    plan = internals.analyzed_plan(frame)
    recorded: list[RecordedOperator] = []
    _collect_operators(plan, recorded)
    return tuple(recorded)


def _collect_operators(node: Any, recorded: list[RecordedOperator]) -> None:
    kind = str(node.nodeName())
    if kind not in ("SubqueryAlias", "View"):
        recorded.append(
            RecordedOperator(
                kind=kind, text=_operator_text(node, kind), shape=_operator_text(node.canonicalized(), kind)
            )
        )
    children = node.children()
    for index in range(children.size()):
        _collect_operators(children.apply(index), recorded)


def _operator_text(node: Any, kind: str) -> str:
    """Return one operator in Spark's text, without expression ids. A leaf is reduced to its kind."""
    text = _WATERMARK.sub("", _IDS.sub("", str(node.simpleString(_MAX_CHARACTERS))))
    return _LEAF.sub(kind, text)
