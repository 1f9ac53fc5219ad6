"""One operator of a logical plan in the JVM, with few calls to it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import StructType

from millstream.frames.build_views import SOURCE_OPTION
from millstream.frames.plan_description.scope import split_attribute
from millstream.spark import internals

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Separates the items of a Scala sequence in one text. No expression contains it.
_SEPARATOR = "\x01"
_MAX_FIELDS = 100_000


@dataclass(frozen=True)
class OutputColumn:
    """One output column of an operator."""

    name: str
    id: str
    type: str
    nullable: bool


class LogicalNode:
    """A node of Spark's logical plan."""

    def __init__(self, spark: SparkSession, plan: Any) -> None:
        self.spark = spark
        self.plan = plan
        self.kind = str(plan.nodeName())

    @cached_property
    def children(self) -> list[LogicalNode]:
        """The inputs. A processor's second child, which is its initial state, is left out."""
        children = self.plan.children()
        count = 1 if self.kind.startswith("TransformWithState") else children.size()
        return [LogicalNode(self.spark, children.apply(index)) for index in range(count)]

    @cached_property
    def is_streaming(self) -> bool:
        """Whether a stream is among its inputs."""
        return bool(self.plan.isStreaming())

    @cached_property
    def output(self) -> list[str]:
        """The output columns in the plan's text, such as `user#12L`."""
        return split_sequence(self.plan.output())

    @cached_property
    def attributes(self) -> list[OutputColumn]:
        """The output columns with their types."""
        schema = StructType.fromJson(json.loads(self.plan.schema().json()))
        return [
            OutputColumn(*split_attribute(text), field.dataType.simpleString(), field.nullable)
            for text, field in zip(self.output, schema.fields, strict=True)
        ]

    @cached_property
    def expressions(self) -> list[str]:
        """The expressions in the plan's text, in Spark's order."""
        return split_sequence(self.plan.expressions())

    @cached_property
    def aggregate_expressions(self) -> list[str]:
        """The result columns of an aggregation."""
        return split_sequence(self.plan.aggregateExpressions())

    @cached_property
    def text(self) -> str:
        """The operator on one line."""
        return str(self.plan.simpleString(_MAX_FIELDS)).lstrip("~")

    @cached_property
    def conjuncts(self) -> list[str]:
        """The conditions of a filter, each of which a row must meet."""
        return split_conjuncts(self.spark, self.plan.condition())

    @property
    def first_projection(self) -> list[str]:
        """The columns of the first row into which `Expand` turns a row."""
        return split_sequence(self.plan.projections().apply(0))

    @property
    def projection_count(self) -> int:
        """The number of rows into which `Expand` turns a row."""
        return int(self.plan.projections().size())

    @property
    def metrics_name(self) -> str:
        """The name of observed metrics."""
        return str(self.plan.name())

    @property
    def watermark_delay(self) -> str:
        """The delay of a watermark, such as `10 minutes`."""
        return str(self.plan.delay().toString())

    @cached_property
    def source_name(self) -> str | None:
        """The source of the spec that a leaf reads, or None if a user's function opened it."""
        kind = str(self.plan.getClass().getSimpleName())
        if kind == "StreamingRelationV2":
            value = self.plan.extraOptions().get(SOURCE_OPTION)
            return None if value is None else str(value)
        if kind == "StreamingRelation":
            options = self.plan.dataSource().options()
        elif kind == "LogicalRelation":
            relation = self.plan.relation()
            if str(relation.getClass().getSimpleName()) != "HadoopFsRelation":
                return None
            options = relation.options()
        else:
            return None
        return str(options.apply(SOURCE_OPTION)) if options.contains(SOURCE_OPTION) else None


def split_sequence(sequence: Any) -> list[str]:
    """Return the items of a Scala sequence as texts, in one call."""
    return str(sequence.mkString(_SEPARATOR)).split(_SEPARATOR) if sequence.size() else []


def split_conjuncts(spark: SparkSession, condition: Any) -> list[str]:
    """Return the parts of a condition that `AND` connects."""
    return split_sequence(internals.split_conjunction(spark, condition))
