"""A plan whose streams can be read continuously, for asking Spark about the operators above them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# The names of what the runtime counts in a query; the plan is the user's.
OURS = "millstream:"


def readable(frame: DataFrame) -> Any:
    """The analysed plan of `frame`, each stream in it exchanged for one that Spark can read continuously.

    The columns stay. The plan is good for Spark's checker and for nothing else.
    """
    spark = frame.sparkSession
    model = spark.readStream.format("rate").load()._jdf.queryExecution().analyzed()
    return _exchanged(frame._jdf.queryExecution().analyzed(), model, spark._jvm)


def _exchanged(plan: Any, model: Any, jvm: Any) -> Any:
    if plan.getClass().getSimpleName() in ("StreamingRelation", "StreamingExecutionRelation"):
        return _like(model, plan.output())
    inputs = plan.children()
    if plan.getClass().getSimpleName() == "CollectMetrics" and plan.name().startswith(OURS):
        return _exchanged(inputs.apply(0), model, jvm)
    if not inputs.size():
        return plan
    below = [_exchanged(inputs.apply(index), model, jvm) for index in range(inputs.size())]
    return plan.withNewChildren(jvm.org.apache.spark.api.python.PythonUtils.toSeq(below))


def _like(model: Any, output: Any) -> Any:
    """`model`, a leaf, with other columns."""
    fields = [model.productElement(index) for index in range(model.productArity())]
    names = [model.productElementName(index) for index in range(model.productArity())]
    fields[names.index("output")] = output
    return model.copy(*fields)
