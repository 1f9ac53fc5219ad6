"""PySpark's and the JVM's private parts that Millstream relies on, one function each.

No other module uses them, so that an upgrade of Spark is reviewed here. `tests/spark/test_internals.py` calls each
function and fails if an upgrade has moved what it uses.
"""

from __future__ import annotations

import os
import sys
from functools import wraps
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark import SparkContext
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

_RUNTIME = "org.apache.spark.sql.execution.streaming.runtime"
PLAIN_PATHS = {"__globPaths__": "false"}
"""Option of a batch reader that takes its paths as they are: `DataSource.GLOB_PATHS_KEY`.

By default a path with `[`, `{`, `*` or `?` is a pattern.
"""


def jvm(spark: SparkSession) -> Any:
    """Return Py4J's view of the JVM, in which classes are attributes: `pyspark.sql.SparkSession._jvm`."""
    return spark._jvm


def gateway(spark: SparkSession) -> Any:
    """Return Py4J's gateway, which makes Java arrays: `pyspark.SparkContext._gateway`."""
    return spark._sc._gateway


def count_executors(context: SparkContext) -> int:
    """Return the number of registered executors without the driver: `SparkContext.getExecutorMemoryStatus`."""
    return int(context._jsc.sc().getExecutorMemoryStatus().size()) - 1


def executor_memory(context: SparkContext) -> int:
    """Return the heap of an executor in bytes, with Spark's default: `SparkConf.getSizeAsBytes`."""
    return int(context._jsc.sc().conf().getSizeAsBytes("spark.executor.memory", "1g"))


def list_executors(context: SparkContext) -> frozenset[str]:
    """Return the address of each registered executor and of the driver: `SparkContext.getExecutorMemoryStatus`."""
    return frozenset(str(context._jsc.sc().getExecutorMemoryStatus().keySet().mkString(" ")).split())


def count_jobs(context: SparkContext) -> int:
    """Return the number of jobs since the context started, the id of the next one: `DAGScheduler.numTotalJobs`."""
    return int(context._jsc.sc().dagScheduler().numTotalJobs())


def is_stopped(context: SparkContext) -> bool:
    """Return whether Spark has stopped, as it does when a cluster ends the application: `SparkContext.isStopped`."""
    return bool(context._jsc.sc().isStopped())


def java_class(spark: SparkSession, name: str) -> Any:
    """Return a Java class by its full name, in one look-up: each dot after `_jvm` would be one that finds nothing."""
    return getattr(jvm(spark), name)


def scala_object(spark: SparkSession, name: str) -> Any:
    """Return a Scala object by its full name without the `$` that Scala appends."""
    return java_class(spark, f"{name}$").__getattr__("MODULE$")


def scala_seq(spark: SparkSession, items: Iterable[object]) -> Any:
    """Return a Scala `Seq`: `org.apache.spark.api.python.PythonUtils`."""
    return java_class(spark, "org.apache.spark.api.python.PythonUtils").toSeq(list(items))


def java_session(spark: SparkSession) -> Any:
    """Return Spark's own session: `org.apache.spark.sql.classic.SparkSession`."""
    return spark._jsparkSession


def clone_session(spark: SparkSession) -> Any:
    """Return a copy of Spark's own session with its settings and views: `classic.SparkSession.cloneSession`."""
    return java_session(spark).cloneSession()


def find_temporary_view(spark: SparkSession, name: str) -> Any | None:
    """Return a temporary view of the session as a `catalog.TemporaryViewRelation`; None if there is none."""
    view = java_session(spark).sessionState().catalog().getRawTempView(name)
    return view.get() if view.isDefined() else None


def java_frame(frame: DataFrame) -> Any:
    """Return Spark's own DataFrame: `org.apache.spark.sql.classic.Dataset`."""
    return frame._jdf


def java_column(column: Column) -> Any:
    """Return the JVM's column."""
    return column._jc


def column_sql(spark: SparkSession, column: Column) -> str:
    """Return an expression as SQL, by `ColumnNodeToExpressionConverter` and `Expression.sql`."""
    converter = scala_object(spark, "org.apache.spark.sql.classic.ColumnNodeToExpressionConverter")
    return str(converter.apply(java_column(column).node()).sql())


def analyzed_plan(frame: DataFrame) -> Any:
    """Return the analysed logical plan: `QueryExecution.analyzed`."""
    return java_frame(frame).queryExecution().analyzed()


def parse_plan(spark: SparkSession, sql: str) -> Any:
    """Return the logical plan of a statement before analysis: `SessionState.sqlParser`. Raises `ParseException`."""
    return java_session(spark).sessionState().sqlParser().parsePlan(sql)


def frame_of_plan(spark: SparkSession, plan: Any) -> DataFrame:
    """Return a DataFrame over a logical plan: `org.apache.spark.sql.classic.Dataset.ofRows`."""
    from pyspark.sql import DataFrame  # noqa: PLC0415 - this module is imported where there may be no PySpark

    return DataFrame(
        scala_object(spark, "org.apache.spark.sql.classic.Dataset").ofRows(java_session(spark), plan), spark
    )


def drop_local_checkpoint(frame: DataFrame) -> None:
    """Delete the rows that executors keep for `DataFrame.localCheckpoint`: `LogicalRDD.rdd`.

    Spark itself deletes them when the JVM next collects the frame as garbage.
    """
    frame._jdf.queryExecution().logical().rdd().unpersist(False)  # noqa: FBT003 - Java has no keywords


def hadoop_configuration(spark: SparkSession) -> Any:
    """Return Hadoop's configuration, which opens file systems: `JavaSparkContext.hadoopConfiguration`."""
    return spark._jsc.hadoopConfiguration()


def context_configuration(context: SparkContext) -> Any:
    """Return Hadoop's configuration of a context: `JavaSparkContext.hadoopConfiguration`."""
    return context._jsc.hadoopConfiguration()


def context_class(context: SparkContext, name: str) -> Any:
    """Return a Java class by its full name, from a context's JVM."""
    return getattr(context._jvm, name)


def wait_for_listeners(spark: SparkSession, patience: int) -> None:
    """Wait until listeners have heard every event: `LiveListenerBus.waitUntilEmpty`.

    Raises Py4J's error around a `TimeoutException` after `patience` milliseconds.
    """
    spark._jsc.sc().listenerBus().waitUntilEmpty(patience)


def start_callback_server(spark: SparkSession) -> None:
    """Start the thread that takes calls of the JVM, such as those of foreachBatch; PySpark starts it when needed."""
    from pyspark.java_gateway import ensure_callback_server_started  # noqa: PLC0415 - PySpark's own does so too

    ensure_callback_server_started(gateway(spark))  # type: ignore[no-untyped-call]


def add_query_listener(spark: SparkSession, listener: object) -> Any:
    """Attach a Python object that implements `PythonStreamingQueryListener` to a session's queries.

    Returns Spark's own listener around it, for `remove_query_listener`.
    """
    start_callback_server(spark)
    name = "org.apache.spark.sql.streaming.PythonStreamingQueryListenerWrapper"
    attached = java_class(spark, name)(listener)
    spark.streams._jsqm.addListener(attached)
    return attached


def remove_query_listener(spark: SparkSession, attached: Any) -> None:
    """Detach what `add_query_listener` returned: `StreamingQueryManager.removeListener`."""
    spark.streams._jsqm.removeListener(attached)


def stream_execution(query: StreamingQuery) -> Any:
    """Return what runs a query: `org.apache.spark.sql.execution.streaming.runtime.StreamExecution`."""
    return query._jsq.streamingQuery()


def progress_reports(query: StreamingQuery) -> Any:
    """Return the last progress reports as a Java array whose items have `json()`: `StreamingQuery.recentProgress`."""
    return query._jsq.recentProgress()


def is_running(query: StreamingQuery) -> bool:
    """Return whether the thread of a query is alive: `StreamExecution.queryExecutionThread`."""
    return bool(stream_execution(query).queryExecutionThread().isAlive())


def is_waiting_for_trigger(query: StreamingQuery) -> bool:
    """Return whether a query sleeps until its next trigger, so that stopping it interrupts no batch.

    A thread that is neither in a trigger nor asleep is about to begin one or to end.
    """
    stream = stream_execution(query)
    if stream.status().isTriggerActive():
        return False
    return str(stream.queryExecutionThread().getState().name()) == "TIMED_WAITING"


def terminate_after_batch(spark: SparkSession, query: StreamingQuery) -> None:
    """Let a query end by itself before its next trigger: `StreamExecution.state` becomes `TERMINATED`."""
    stream_execution(query).state().set(scala_object(spark, f"{_RUNTIME}.TERMINATED"))


def foreach_batch_function(writer: DataStreamWriter) -> Any:
    """Return the function that `foreachBatch` gave a writer: `DataStreamWriter.foreachBatchWriter`."""
    java_writer = writer._jwrite
    field = java_writer.getClass().getDeclaredField("foreachBatchWriter")
    field.setAccessible(True)
    return field.get(java_writer)


def active_context() -> SparkContext | None:
    """Return the context of this process, or None before the first: `SparkContext._active_spark_context`."""
    from pyspark import SparkContext  # noqa: PLC0415 - as above

    return SparkContext._active_spark_context


def set_worker_folder(context: SparkContext, folder: str) -> None:
    """Let workers on this machine import a folder's modules: an absolute path in `SparkContext._python_includes`."""
    archives = [entry for entry in context._python_includes or () if not entry.startswith("/")]
    context._python_includes = [*archives, folder]


def is_submitted() -> bool:
    """Return whether spark-submit has started this process: `launch_gateway` asks the same."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def submitted_conf() -> dict[str, str]:
    """Return the settings of the JVM that spark-submit has started for this process: `_ensure_initialized`."""
    from pyspark import SparkConf, SparkContext  # noqa: PLC0415 - as above

    # Without it a SparkConf of this process is empty until the first context.
    SparkContext._ensure_initialized()
    return dict(SparkConf().getAll())


def default_session() -> SparkSession | None:
    """Return the session that `SparkSession.builder.getOrCreate` gives, or None: `_instantiatedSession`."""
    from pyspark.sql import SparkSession  # noqa: PLC0415 - as above

    return SparkSession._instantiatedSession


def set_default_session(session: SparkSession | None, *, in_jvm: SparkSession | None = None) -> None:
    """Make a session the default one of Python, `_instantiatedSession`, and of the JVM, `setDefaultSession`.

    User functions find this session. The JVM always needs one: `in_jvm` replaces a `session` that is None.
    """
    from pyspark.sql import SparkSession  # noqa: PLC0415 - as above

    SparkSession._instantiatedSession = session
    chosen = in_jvm or session
    assert chosen is not None, "the JVM needs a session"
    session_class: Any = SparkSession._get_j_spark_session_class(jvm(chosen))
    session_class.setActiveSession(java_session(chosen))
    session_class.setDefaultSession(java_session(chosen))


def disconnect_gateway() -> None:
    """Have Py4J report no more collected objects to the JVM: `GatewayClient.is_connected`."""
    from pyspark import SparkContext  # noqa: PLC0415 - as above

    if SparkContext._gateway is not None:
        SparkContext._gateway._gateway_client.is_connected = False


def optimize_plan(spark: SparkSession, plan: Any) -> Any:
    """Return the optimised form of an analysed plan, streams included: `SessionState.optimizer`. Reads nothing."""
    return java_session(spark).sessionState().optimizer().execute(plan)


def hide_clock(spark: SparkSession, plan: Any) -> Any:
    """Return an analysed plan whose calls for the current time remain calls when it is optimised.

    `ComputeCurrentTime` would replace each one by a literal, and other rules would compute with it. Each becomes a
    `ScalaUDF` that prints as `current_timestamp()`, also for `now()`, as `current_date()` or as `localtimestamp()`.
    Its function is a Scala `Map` from the only argument, an empty text, to the time.
    """
    zone = java_class(spark, "scala.Some")(spark.conf.get("spark.sql.session.timeZone"))
    expressions = "org.apache.spark.sql.catalyst.expressions"
    argument = scala_seq(spark, [scala_object(spark, f"{expressions}.Literal").apply("")])
    clock = java_class(spark, "java.time.Instant").now()
    local = clock.atZone(java_class(spark, "java.time.ZoneId").systemDefault())
    calls = (
        ("CurrentTimestamp", (), "current_timestamp", clock),
        ("Now", (), "current_timestamp", clock),
        ("LocalTimestamp", (zone,), "localtimestamp", local.toLocalDateTime()),
        ("CurrentDate", (zone,), "current_date", local.toLocalDate()),
    )
    empty, none = scala_seq(spark, []), scala_object(spark, "scala.None")
    functions = {}
    for kind, arguments, name, value in calls:
        call = java_class(spark, f"{expressions}.{kind}")(*arguments)
        functions[call] = java_class(spark, f"{expressions}.ScalaUDF")(
            _scala_map(spark, {"": value}),
            call.dataType(),
            argument,
            empty,
            none,
            java_class(spark, "scala.Some")(name),
            False,  # noqa: FBT003 - nullable
            True,  # noqa: FBT003 - deterministic
        )
    return plan.transformAllExpressionsWithSubqueries(_scala_map(spark, functions))


def _scala_map(spark: SparkSession, items: Mapping[Any, Any]) -> Any:
    """Return a Scala `Map`, which is a function too: `org.apache.spark.api.python.PythonUtils`."""
    java_map = java_class(spark, "java.util.HashMap")()
    for key, value in items.items():
        java_map.put(key, value)
    return java_class(spark, "org.apache.spark.api.python.PythonUtils").toScalaMap(java_map)


def split_conjunction(spark: SparkSession, condition: Any) -> Any:
    """Return the parts of a condition as a Scala sequence: `PredicateHelper.splitConjunctivePredicates`."""
    helper = scala_object(spark, "org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys")
    return helper.splitConjunctivePredicates(condition)


def physical_aggregation(spark: SparkSession, plan: Any) -> Any:
    """Return keys, aggregates, results and input of an aggregation: `PhysicalAggregation.unapply`.

    The aggregates are in the order of their buffers in the state.
    """
    return java_class(spark, "org.apache.spark.sql.catalyst.planning.PhysicalAggregation").unapply(plan).get()


def equi_join_keys(spark: SparkSession, plan: Any) -> Any:
    """Return type, left keys, right keys and other condition of a join, or None: `ExtractEquiJoinKeys.unapply`."""
    parts = java_class(spark, "org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys").unapply(plan)
    return parts.get() if parts.isDefined() else None


def start_state_coordinator(spark: SparkSession) -> None:
    """Start the coordinator of state stores, which Spark creates when `StreamingQueryManager` is first used."""
    java_session(spark).streams().active()


def format_offset_metadata(spark: SparkSession, watermark: int, timestamp: int) -> str:
    """Return the metadata line of an offset file as Spark writes it for a first batch: `OffsetSeqMetadata.json`."""
    name = "org.apache.spark.sql.execution.streaming.checkpointing.OffsetSeqMetadata"
    metadata = scala_object(spark, name).apply(watermark, timestamp, java_session(spark).conf())
    return str(metadata.json())


def repartition_state(spark: SparkSession, checkpoint: str, partitions: int) -> None:
    """Repartition the state of a stopped query, as a batch without input (experimental in Spark 4.2)."""
    spark._streamingCheckpointManager.repartition(checkpoint, partitions)


def recognise_numpy_without_loading_it() -> None:
    """Let PySpark look for NumPy's values only once they can be some: `NumpyArrayConverter`, `functions.lit`.

    PySpark's own test of each argument of a call, and of each value that becomes a column, loads `pyspark.testing`,
    and with it pandas: a third of what a run imports. A value can only be NumPy's if NumPy is loaded, and a column or
    a plain value of Python never is.
    """
    from pyspark.sql import Column, functions  # noqa: PLC0415 - as above
    from pyspark.sql.classic import column  # noqa: PLC0415 - as above
    from pyspark.sql.types import NumpyArrayConverter, NumpyScalarConverter  # noqa: PLC0415 - as above

    def is_scalar(_: object, value: object) -> bool:
        numpy = sys.modules.get("numpy")
        return numpy is not None and isinstance(value, numpy.generic)

    def is_vector(_: object, value: object) -> bool:
        numpy = sys.modules.get("numpy")
        return numpy is not None and isinstance(value, numpy.ndarray) and value.ndim == 1

    original = functions.lit
    plain = {type(None), bool, int, float, str}

    @wraps(original)
    def lit(value: Any) -> Column:
        if isinstance(value, Column):
            return value
        return functions.builtin._invoke_function("lit", value) if type(value) in plain else original(value)

    for module in (functions, functions.builtin, column):
        module.lit = lit  # type: ignore[attr-defined]
    NumpyScalarConverter.can_convert = is_scalar  # type: ignore[assignment, method-assign]
    NumpyArrayConverter.can_convert = is_vector  # type: ignore[assignment, method-assign]
