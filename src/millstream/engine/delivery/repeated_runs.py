"""Reset the metrics of a batch whose rows run a second time, and find tasks that Spark has run again by itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from millstream.engine.events.listener_bus import wait_for_reports
from millstream.spark import internals

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.core.status import SparkStageInfo, StatusTracker
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class TaskReruns:
    """The tasks of a batch on a cluster, some of which may run again after an executor is lost.

    Spark adds to a metric what each run of a task has counted, if other tasks read the task's output. Only the runs
    of a job's last tasks add once (`DAGScheduler.handleTaskCompletion`). Cached rows that were lost are computed and
    counted again too.
    """

    spark: SparkSession
    first_job: int
    executors: frozenset[str]

    @classmethod
    def watch(cls, spark: SparkSession) -> TaskReruns:
        """Begin with the jobs that start from here on."""
        context = spark.sparkContext
        return cls(spark, internals.count_jobs(context), internals.list_executors(context))

    def may_count_twice(self, run_id: str, *, is_cached: bool) -> bool:
        """Return whether the metrics of a batch may count rows twice.

        `run_id` is that of the query. `is_cached` is whether the rows of the batch are cached.
        """
        context = self.spark.sparkContext
        if is_cached and not self.executors <= internals.list_executors(context):
            return True
        # Spark's status is made from events.
        wait_for_reports(self.spark)
        tracker = context.statusTracker()
        jobs = [
            job
            for job in range(self.first_job, internals.count_jobs(context))
            if any(map(_has_repeated_tasks, _list_stages(tracker, job)))
        ]
        return bool(jobs) and not set(jobs).isdisjoint(tracker.getJobIdsForGroup(run_id))


def _list_stages(tracker: StatusTracker, job: int) -> Iterator[SparkStageInfo]:
    """Yield the stages of a job, as far as Spark still has them. A stage that was skipped has no tasks."""
    info = tracker.getJobInfo(job)
    for stage_id in () if info is None else info.stageIds:
        stage = tracker.getStageInfo(stage_id)
        if stage is not None:
            yield stage


def _has_repeated_tasks(stage: SparkStageInfo) -> bool:
    """Return whether tasks of a stage have ended more than once, in a second attempt of the stage or in the first."""
    return stage.currentAttemptId > 0 or stage.numCompletedTasks > stage.numTasks


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
