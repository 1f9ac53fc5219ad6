"""Fixtures of plans built by hand, for rules that read plans."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from millstream.analysis.query.plan_model import (
    Aggregate,
    Column,
    Deduplicate,
    Expression,
    Operator,
    PlannedQuery,
    Read,
    Stability,
    VolatileExpression,
    WatermarkOperator,
)
from millstream.diagnostics.finding import Span
from millstream.spec.output_mode import OutputMode
from millstream.spec.trigger import Trigger

if TYPE_CHECKING:
    from collections.abc import Mapping


class Plans:
    """Operators over one stream `orders` with the columns id, ts and at."""

    delay = timedelta(minutes=10)
    here = Span("job.py", 3, 1, 3, 9)

    def column(self, name: str, kind: str = "string", **more: Any) -> Column:
        """A column of the stream."""
        return Column(name, kind, origins=frozenset({("orders", name)}), is_copied=True, **more)

    def stream(self, *columns: Column) -> Read:
        """The stream."""
        value = columns or (self.column("id"), self.column("ts", "timestamp"), self.column("at", "timestamp"))
        return Read(0, "StreamingRelation", "orders", columns=value, is_streaming=True, source="orders")

    def marked(self, below: Operator, time: str = "ts") -> WatermarkOperator:
        """A watermark, which takes the place of any other."""
        columns = tuple(
            replace(column, delay=self.delay if column.name == time else None) for column in below.columns
        )
        return WatermarkOperator(
            0,
            "EventTimeWatermark",
            "",
            (below,),
            columns,
            is_streaming=True,
            span=self.here,
            event_time=time,
            delay=self.delay,
        )

    def project(self, below: Operator, *made: tuple[Column, Expression]) -> Operator:
        """What is made, and nothing else."""
        columns = tuple(column for column, _ in made)
        return Operator(
            0,
            "Project",
            "",
            (below,),
            columns,
            tuple(expression for _, expression in made),
            is_streaming=True,
        )

    def leaf(self, column: Column) -> Expression:
        """A column that is read."""
        return Expression("column", column.name, column.type, column=column)

    def call(self, function: str, *inputs: Expression, kind: str = "", **more: Any) -> Expression:
        """A function of other expressions."""
        text = f"{function}({', '.join(expression.text for expression in inputs)})"
        return Expression(function, text, kind, inputs, **more)

    def grouped(self, below: Operator, *keys: Column) -> Aggregate:
        """GROUP BY, with a count."""
        timed = next((key for key in keys if key.delay is not None), None)
        columns = (*keys, Column("n", "bigint"))
        return Aggregate(
            0,
            "Aggregate",
            "",
            (below,),
            columns,
            is_streaming=True,
            keys=keys,
            event_time_key=timed,
            span=self.here,
        )

    def deduplicate(self, below: Operator, *keys: Column, within: bool = False) -> Deduplicate:
        """`dropDuplicates`."""
        return Deduplicate(
            0,
            "Deduplicate",
            "",
            (below,),
            below.columns,
            is_streaming=True,
            keys=keys,
            is_within_watermark=within,
        )

    def query(
        self,
        root: Operator,
        mode: OutputMode = OutputMode.UPDATE,
        trigger: Trigger | None = None,
        spark: Mapping[str, str] | None = None,
        **more: Any,
    ) -> PlannedQuery:
        """A query of a script."""
        return PlannedQuery("q", root, mode, trigger or Trigger(), span=self.here, spark=spark or {}, **more)

    def drawn(self, function: str, stability: Stability = Stability.UNSTABLE) -> VolatileExpression:
        """Something that is not stable."""
        return VolatileExpression(function, f"{function}()", stability, self.here)


@pytest.fixture
def plans() -> Plans:
    return Plans()
