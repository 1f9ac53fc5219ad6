"""Which operators of a query real-time mode does not have, by Spark's own plan and its own list."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.runtime import sinks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame

_LEAF = "StreamingRelationExec"


def check(frame: DataFrame, plan: Any) -> None:
    """Raise what ends a query with a real-time trigger in its first batch, after `start()` took it.

    `plan` is the physical plan of `frame`.
    """
    jvm: Any = frame.sparkSession._jvm
    names = {name for name, over_stream in _operators(plan) if over_stream} - _allowed(jvm)
    outside = sorted(name for name in names if not name.endswith(_LEAF))
    if not outside:
        return
    words = {
        "errorType": "operator",
        "message": f"{', '.join(outside)} {'is' if len(outside) == 1 else 'are'}",
    }
    raise sinks.spark_error(jvm, "STREAMING_REAL_TIME_MODE.OPERATOR_OR_SINK_NOT_IN_ALLOWLIST", words)


def planned(frame: DataFrame) -> Any:
    """The physical plan of a batch, made as `DataFrame.explain` makes it for a stream; it is not run.

    Raises what Spark has no physical operator for, which ends a query of any trigger in its first batch.
    """
    jvm: Any = frame.sparkSession._jvm
    streaming: Any = jvm.org.apache.spark.sql.execution.streaming
    runtime = streaming.runtime
    run, made = jvm.java.util.UUID.randomUUID(), _module(runtime, "IncrementalExecution")
    settings = jvm.org.apache.spark.api.python.PythonUtils.toScalaMap(jvm.java.util.HashMap())
    return runtime.IncrementalExecution(
        frame.sparkSession._jsparkSession,
        frame._jdf.queryExecution().analyzed(),
        jvm.org.apache.spark.sql.streaming.OutputMode.Update(),
        "<unknown>",
        run,
        run,
        0,
        jvm.scala.Option.empty(),
        streaming.checkpointing.OffsetSeqMetadata(0, 0, settings),
        runtime.WatermarkPropagator.noop(),
        False,  # noqa: FBT003 - not the first batch; Java has no names of arguments
        getattr(made, "$lessinit$greater$default$12")(),
        getattr(made, "$lessinit$greater$default$13")(),
        jvm.org.apache.spark.sql.execution.CommandExecutionMode.ALL(),
        False,  # noqa: FBT003 - no trigger that ends
    ).executedPlan()


def _operators(plan: Any) -> Iterator[tuple[str, bool]]:
    """Each operator's class, and whether rows of a stream pass through it; the plan's own first."""
    name = plan.getClass().getName()
    inputs = plan.children()
    below = [list(_operators(inputs.apply(index))) for index in range(inputs.size())]
    yield name, name.endswith(_LEAF) or any(one[0][1] for one in below)
    for one in below:
        yield from one


def _allowed(jvm: Any) -> set[str]:
    """Spark's own list."""
    listed = _module(jvm.org.apache.spark.sql.execution.streaming.runtime, "RealTimeModeAllowlist")
    names = getattr(listed, f"{listed.getClass().getName().replace('.', '$')}$allowedOperators")()
    return set(names.mkString(" ").split())


def _module(package: Any, name: str) -> Any:
    """A Scala object."""
    return getattr(getattr(package, f"{name}$"), "MODULE$")
