"""Read Spark's analysed plan as plain nodes, from its JSON and, for missing details, from JVM calls."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from millstream.checking.query_plan.json_transfer import fetch_plan_json
from millstream.checking.query_plan.type_ddl import to_ddl
from millstream.spark import internals

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame

# Errors of JVM calls. A plan whose calls fail is described by what is already known.
UNANSWERED = (PySparkException, Py4JError)
# Errors of reading when a release of Spark writes its JSON differently.
UNKNOWN_SHAPE = (LookupError, ValueError, TypeError, AttributeError, StopIteration)

_BETWEEN = "\u0000"
_ID_SUFFIX = re.compile(r"#(\d+)L?(?:-T(\d+)ms)?$")
_IDS = re.compile(r"#\d+L?(-T\d+ms)?")
_MAX_TEXT = 2_000


@dataclass(frozen=True)
class Attribute:
    """An output column of a node, with Spark's expression id."""

    id: int
    name: str
    type: str
    is_nullable: bool
    delay: timedelta | None


@dataclass
class PlanNode:
    """A node of the plan."""

    kind: str
    fields: dict[str, Any]
    """The node's fields in Spark's JSON."""
    children: list[PlanNode]
    java: Any

    # Computed on demand, because each property makes a few JVM calls.
    @cached_property
    def output(self) -> list[Attribute]:
        """The output columns."""
        return _attributes(self.java)

    @cached_property
    def text(self) -> str:
        """Spark's one-line text of the node, without ids."""
        try:
            return _IDS.sub("", str(self.java.simpleString(_MAX_TEXT)))
        except UNANSWERED:
            return ""

    @cached_property
    def is_streaming(self) -> bool:
        """True if the node or a node below it is a stream."""
        try:
            return bool(self.java.isStreaming())
        except UNANSWERED:
            return False

    def walk(self) -> Iterator[PlanNode]:
        """Yield the node and all nodes below it."""
        yield self
        for child in self.children:
            yield from child.walk()


def read_plan(frame: DataFrame) -> PlanNode:
    """Return the analysed plan of a DataFrame."""
    plan = internals.analyzed_plan(frame)
    try:
        return read_node(plan, iter(json.loads(fetch_plan_json(frame, plan))))
    except (*UNANSWERED, *UNKNOWN_SHAPE):
        return _node_without_json(plan)


def simple_class_name(entry: dict[str, Any]) -> str:
    """Return the simple class name of a node or an expression."""
    name = str(entry.get("class", ""))
    return name.rpartition(".")[2].rpartition("$")[2] or name


def read_node(java: Any, entries: Iterator[dict[str, Any]]) -> PlanNode:
    """Return a node with the nodes below it. The JSON lists nodes from the top, with their number of children."""
    entry = next(entries)
    children = []
    if count := int(entry.get("num-children", 0)):
        below = java.children()
        children = [read_node(below.apply(index), entries) for index in range(count)]
    return PlanNode(simple_class_name(entry), entry, children, java)


def _node_without_json(java: Any) -> PlanNode:
    """Return a node of a plan without JSON: its name, columns and children."""
    below = java.children()
    children = [_node_without_json(below.apply(index)) for index in range(below.size())]
    return PlanNode(str(java.nodeName()), {}, children, java)


def _attributes(java: Any) -> list[Attribute]:
    try:
        fields = json.loads(java.schema().json())["fields"]
        id_suffixes = [
            _ID_SUFFIX.search(mark) for mark in str(java.output().mkString(_BETWEEN)).split(_BETWEEN)
        ]
    except (*UNANSWERED, *UNKNOWN_SHAPE):
        return []
    if len(fields) != len(id_suffixes):
        # A name contains the separator, so no column can be followed through this node.
        id_suffixes = [None] * len(fields)
    return [_attribute(field, mark) for field, mark in zip(fields, id_suffixes, strict=True)]


def _attribute(field: dict[str, Any], mark: re.Match[str] | None) -> Attribute:
    delay = field.get("metadata", {}).get("spark.watermarkDelayMs")
    return Attribute(
        id=int(mark[1]) if mark else -1,
        name=str(field["name"]),
        type=to_ddl(field["type"]),
        is_nullable=bool(field["nullable"]),
        delay=timedelta(milliseconds=delay) if isinstance(delay, int) else None,
    )
