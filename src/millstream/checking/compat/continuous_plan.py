"""Replace the streams of a plan with continuous ones, so that Spark can check the operators above them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.spark import internals

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# The prefix of the metrics that the engine adds to a query. Everything else in the plan is the user's.
OURS = "millstream:"


def to_continuous_plan(frame: DataFrame) -> Any:
    """Return the analysed plan of `frame` with each stream replaced by one that Spark can read continuously.

    The columns stay the same. Use the plan only for Spark's checker.
    """
    spark = frame.sparkSession
    model = internals.analyzed_plan(spark.readStream.format("rate").load())
    return _replace_streams(internals.analyzed_plan(frame), model, internals.jvm(spark))


def _replace_streams(plan: Any, model: Any, jvm: Any) -> Any:
    if plan.getClass().getSimpleName() in ("StreamingRelation", "StreamingExecutionRelation"):
        return _copy_leaf(model, plan.output())
    inputs = plan.children()
    if plan.getClass().getSimpleName() == "CollectMetrics" and plan.name().startswith(OURS):
        return _replace_streams(inputs.apply(0), model, jvm)
    if not inputs.size():
        return plan
    below = [_replace_streams(inputs.apply(index), model, jvm) for index in range(inputs.size())]
    return plan.withNewChildren(jvm.org.apache.spark.api.python.PythonUtils.toSeq(below))


def _copy_leaf(model: Any, output: Any) -> Any:
    """Return a copy of the leaf `model` with other columns."""
    fields = [model.productElement(index) for index in range(model.productArity())]
    names = [model.productElementName(index) for index in range(model.productArity())]
    fields[names.index("output")] = output
    return model.copy(*fields)
