"""Find operators that real-time mode does not support, from Spark's physical plan and Spark's allowlist."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.checking.compat import sink_modes
from millstream.spark import internals

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame

_LEAF = "StreamingRelationExec"


def check_operators(frame: DataFrame, plan: Any) -> None:
    """Raise the error that would end a query with a real-time trigger in its first batch, after `start()`.

    `plan` is the physical plan of `frame`.
    """
    jvm: Any = internals.jvm(frame.sparkSession)
    names = {name for name, over_stream in _operators(plan) if over_stream} - _allowed_operators(jvm)
    unsupported = sorted(name for name in names if not name.endswith(_LEAF))
    if not unsupported:
        return
    parameters = {
        "errorType": "operator",
        "message": f"{', '.join(unsupported)} {'is' if len(unsupported) == 1 else 'are'}",
    }
    raise sink_modes.spark_error(
        jvm, "STREAMING_REAL_TIME_MODE.OPERATOR_OR_SINK_NOT_IN_ALLOWLIST", parameters
    )


def plan_batch(frame: DataFrame) -> Any:
    """Return the physical plan of a batch, created as `DataFrame.explain` does for a stream, without running it.

    Raises Spark's error for a plan without a physical operator, which ends any query in its first batch.
    """
    jvm: Any = internals.jvm(frame.sparkSession)
    streaming: Any = jvm.org.apache.spark.sql.execution.streaming
    runtime = streaming.runtime
    run, companion = jvm.java.util.UUID.randomUUID(), _scala_object(runtime, "IncrementalExecution")
    settings = jvm.org.apache.spark.api.python.PythonUtils.toScalaMap(jvm.java.util.HashMap())
    return runtime.IncrementalExecution(
        internals.java_session(frame.sparkSession),
        internals.analyzed_plan(frame),
        jvm.org.apache.spark.sql.streaming.OutputMode.Update(),
        "<unknown>",
        run,
        run,
        0,
        jvm.scala.Option.empty(),
        streaming.checkpointing.OffsetSeqMetadata(0, 0, settings),
        runtime.WatermarkPropagator.noop(),
        False,  # noqa: FBT003 - not the first batch; Java has no keyword arguments
        getattr(companion, "$lessinit$greater$default$12")(),
        getattr(companion, "$lessinit$greater$default$13")(),
        jvm.org.apache.spark.sql.execution.CommandExecutionMode.ALL(),
        False,  # noqa: FBT003 - no finite trigger
    ).executedPlan()


def _operators(plan: Any) -> Iterator[tuple[str, bool]]:
    """Yield each operator's class from the top, and whether rows of a stream pass through it."""
    name = plan.getClass().getName()
    inputs = plan.children()
    below = [list(_operators(inputs.apply(index))) for index in range(inputs.size())]
    yield name, name.endswith(_LEAF) or any(operators[0][1] for operators in below)
    for operators in below:
        yield from operators


def _allowed_operators(jvm: Any) -> set[str]:
    """Return the operators of Spark's allowlist."""
    allowlist = _scala_object(jvm.org.apache.spark.sql.execution.streaming.runtime, "RealTimeModeAllowlist")
    names = getattr(allowlist, f"{allowlist.getClass().getName().replace('.', '$')}$allowedOperators")()
    return set(names.mkString(" ").split())


def _scala_object(package: Any, name: str) -> Any:
    """Return a Scala object."""
    return getattr(getattr(package, f"{name}$"), "MODULE$")
