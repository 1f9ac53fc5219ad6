"""Reset the metrics of a batch before its rows are run a second time, so that nothing counts twice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.spark import internals

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame


def reset_metrics(frame: DataFrame, stream: Any) -> None:
    """Set the metrics of a running batch to zero, as far as a second run of its rows counts them again.

    `frame` is the batch, `stream` Spark's StreamExecution. A sink runs a batch twice if its first commit loses to
    another writer's. Rows, dead letters and malformed records would then be counted twice. Operators before a shuffle
    or a broadcast are not run again, since Spark keeps their output, so their counts stay.
    """
    jvm: Any = internals.jvm(frame.sparkSession)
    for node in _last_stage(jvm, stream.lastExecution().executedPlan()):
        metrics = node.metrics().valuesIterator()
        while metrics.hasNext():
            metrics.next().reset()
        if _class_name(node) == "CollectMetricsExec":
            accumulator = jvm.org.apache.spark.util.AccumulatorContext.get(node.accumulatorId())
            if accumulator.isDefined():
                accumulator.get().reset()


def _last_stage(jvm: Any, plan: Any) -> Iterator[Any]:
    """Yield the operators of a plan that run in the tasks whose rows a sink receives."""
    node = jvm.org.apache.spark.sql.execution.CollectMetricsExec.stripAQEPlan(plan)
    if _class_name(node).endswith("ExchangeExec"):
        return
    yield node
    children = node.children()
    for index in range(children.size()):
        yield from _last_stage(jvm, children.apply(index))


def _class_name(node: Any) -> str:
    return str(node.getClass().getSimpleName())
