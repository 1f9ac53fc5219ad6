"""Spark's analysed plan as plain nodes: its JSON, and calls into the JVM for what that leaves out."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from millstream.runtime.planning.ddl import ddl
from millstream.runtime.planning.pieces import json_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame

# What calls into the JVM raise; a plan that cannot be asked is described by what is known of it.
UNANSWERED = (PySparkException, Py4JError)
# What reading raises where a release of Spark writes its JSON otherwise.
UNKNOWN_SHAPE = (LookupError, ValueError, TypeError, AttributeError, StopIteration)

_BETWEEN = "\u0000"
_IDENTIFIED = re.compile(r"#(\d+)L?(?:-T(\d+)ms)?$")
_IDS = re.compile(r"#\d+L?(-T\d+ms)?")
_LONGEST = 2_000


@dataclass(frozen=True)
class Attribute:
    """A column that a node gives, by the number that Spark follows it with."""

    id: int
    name: str
    type: str
    nullable: bool
    delay: timedelta | None


@dataclass
class Node:
    """A node of the plan."""

    kind: str
    fields: dict[str, Any]
    """What Spark's JSON says of it."""
    children: list[Node]
    java: Any

    # Asked for only where wanted: each is a few calls into the JVM.
    @cached_property
    def output(self) -> list[Attribute]:
        """The columns that it gives."""
        return _output(self.java)

    @cached_property
    def text(self) -> str:
        """Spark's line of it, without ids."""
        try:
            return _IDS.sub("", str(self.java.simpleString(_LONGEST)))
        except UNANSWERED:
            return ""

    @cached_property
    def streaming(self) -> bool:
        """Is there a stream below it, or is it one?"""
        try:
            return bool(self.java.isStreaming())
        except UNANSWERED:
            return False

    def walk(self) -> Iterator[Node]:
        """Itself and all below it."""
        yield self
        for one in self.children:
            yield from one.walk()


def nodes(frame: DataFrame) -> Node:
    """The analysed plan of a DataFrame."""
    plan = frame._jdf.queryExecution().analyzed()
    try:
        return read(plan, iter(json.loads(json_of(frame, plan))))
    except (*UNANSWERED, *UNKNOWN_SHAPE):
        return _bare(plan)


def kind_of(entry: dict[str, Any]) -> str:
    """The simple name of the class of a node or an expression."""
    name = str(entry.get("class", ""))
    return name.rpartition(".")[2].rpartition("$")[2] or name


def read(java: Any, told: Iterator[dict[str, Any]]) -> Node:
    """One node and those below it; the JSON has them in the order from the top, each with its number of children."""
    entry = next(told)
    children = []
    if count := int(entry.get("num-children", 0)):
        below = java.children()
        children = [read(below.apply(index), told) for index in range(count)]
    return Node(kind_of(entry), entry, children, java)


def _bare(java: Any) -> Node:
    """A node of a plan that has no JSON: its name, columns and children."""
    below = java.children()
    children = [_bare(below.apply(index)) for index in range(below.size())]
    return Node(str(java.nodeName()), {}, children, java)


def _output(java: Any) -> list[Attribute]:
    try:
        fields = json.loads(java.schema().json())["fields"]
        marks = [_IDENTIFIED.search(mark) for mark in str(java.output().mkString(_BETWEEN)).split(_BETWEEN)]
    except (*UNANSWERED, *UNKNOWN_SHAPE):
        return []
    if len(fields) != len(marks):
        # A name with our separator in it: nothing can be followed through this node.
        marks = [None] * len(fields)
    return [_attribute(told, mark) for told, mark in zip(fields, marks, strict=True)]


def _attribute(told: dict[str, Any], mark: re.Match[str] | None) -> Attribute:
    delay = told.get("metadata", {}).get("spark.watermarkDelayMs")
    return Attribute(
        id=int(mark[1]) if mark else -1,
        name=str(told["name"]),
        type=ddl(told["type"]),
        nullable=bool(told["nullable"]),
        delay=timedelta(milliseconds=delay) if isinstance(delay, int) else None,
    )
