"""What Spark's `start()` would say of a query, in Spark's own words, without starting anything."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException

from millstream.runtime import complaints, continuous, cures, realtime, sinks
from millstream.spec.duration import Duration
from millstream.spec.mode import OutputMode
from millstream.spec.trigger import Trigger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import DataFrame

# Settings that make Spark silent. Results would be wrong all the same, so they silence nothing here.
_SILENCERS = ("spark.sql.streaming.statefulOperator.checkCorrectness.enabled",)
# What Spark puts before the sentence that says something.
_HEADING = re.compile(r"Invalid streaming output mode: \w+\. |has the following limitation: ")
_LEAST = "spark.sql.streaming.realTimeMode.minBatchDuration"


class Cause(StrEnum):
    """What would have to be another for Spark to take the query."""

    MODE = "mode"
    """Spark takes the plan in another output mode."""
    TRIGGER = "trigger"
    """Spark takes the plan with the default trigger."""
    SINK = "sink"
    """Spark does not write this kind of sink in this output mode or with this trigger."""
    PLAN = "plan"
    """Spark takes the plan in no output mode and with no trigger."""


@dataclass(frozen=True)
class Refusal:
    """Spark's words for not starting a query."""

    cause: Cause
    error_class: str
    """Spark's: `STREAMING_OUTPUT_MODE.UNSUPPORTED_OPERATION`; the class of its older errors is a number."""
    sentence: str
    """Without a full stop, the error class and the SQL state."""
    why: str
    """`Spark says: [CLASS] …`, without the plan."""
    modes: tuple[OutputMode, ...]
    """The output modes in which Spark takes the same plan with the same trigger."""
    error: PySparkException
    """Spark's error."""
    late: bool = False
    """Does `start()` take the query, which then ends in its first batch?"""
    node: Any = None
    """The operator that it is about, as the JVM holds it; None where it is about the query."""

    @property
    def fix(self) -> str:
        """What to do about it; empty when nothing is known."""
        return cures.cure(self.why, self.modes)

    def about(self, mode: OutputMode, trigger: Trigger) -> str:
        """How and why it cannot run, to follow a name: `cannot run in output mode append: …`."""
        match self.cause:
            case Cause.SINK if self.modes or not (trigger.real_time or trigger.continuous):
                how = f"in output mode {mode}"
            case Cause.MODE:
                how = f"in output mode {mode}"
            case Cause.TRIGGER | Cause.SINK:
                how = f"with trigger {trigger}"
            case Cause.PLAN:
                how = "as a stream"
        return f"cannot run {how}: {self.sentence}"

    @property
    def text(self) -> str:
        """All that Spark said, with the plan where it shows one."""
        return complaints.text(self.error)


def refusal(
    frame: DataFrame, mode: OutputMode, trigger: Trigger | None = None, sink: str | None = None
) -> Refusal | None:
    """What `start()` or the first batch would refuse, first things first; None for a query that would run.

    `sink` is Spark's name of the format, or `foreach` or `foreachBatch`; None leaves out what depends on it.
    Of the sources only their schema counts: what a reader itself cannot do with a trigger is not judged.
    Spark's own switches for these checks (`unsupportedOperationCheck`, `checkCorrectness`) have no effect.
    Nothing runs and nothing is written. Costs a few calls into the JVM.
    """
    trigger = trigger or Trigger()
    plan = frame._jdf.queryExecution().analyzed()
    wrong = _first(frame, plan, mode, trigger, sink)
    if wrong is None:
        return None
    error, cause, late = wrong
    modes = tuple(other for other in OutputMode if _first(frame, plan, other, trigger, sink) is None)
    if cause is Cause.PLAN and modes:
        cause = Cause.MODE
    sentence, why = _words(error)
    node = _node(error) or (_aggregate(plan) if "aggregations" in sentence and modes else None)
    return Refusal(cause, error.getCondition() or "", sentence, why, modes, error, late, node)


def of_batch(frame: DataFrame) -> Refusal | None:
    """What Spark would refuse when `frame` is read or written as a table: `count()`, `show()`, `write`."""
    plan = frame._jdf.queryExecution().analyzed()
    wrong = _said(lambda: _checker(frame).checkForBatch(plan))
    if wrong is None:
        return None
    sentence, why = _words(wrong)
    return Refusal(Cause.PLAN, wrong.getCondition() or "", sentence, why, (), wrong, node=_node(wrong))


def _first(
    frame: DataFrame, plan: Any, mode: OutputMode, trigger: Trigger, sink: str | None
) -> tuple[PySparkException, Cause, bool] | None:
    """The first of Spark's checks that fails, in the order of `start()`, and whether `start()` leaves it out."""
    for ask, late in ((_checks, False), (_late_checks, True)):
        for cause, check in ask(frame, plan, mode, trigger, sink):
            if wrong := _said(check):
                return wrong, cause, late
    return None


def _checks(
    frame: DataFrame, plan: Any, mode: OutputMode, trigger: Trigger, sink: str | None
) -> Iterator[tuple[Cause, Callable[[], object]]]:
    """DataFrame.writeStream, DataStreamWriter.startInternal, StreamingQueryManager, ResolveWriteToStream."""
    jvm: Any = frame.sparkSession._jvm
    checker = _checker(frame)
    spoken = spark_mode(jvm, mode)
    yield Cause.PLAN, lambda: frame.writeStream
    if sink is not None:
        yield Cause.SINK, lambda: sinks.check(jvm, sink, spoken, trigger)
    if trigger.real_time:
        yield Cause.TRIGGER, lambda: _interval(frame, trigger)
        yield Cause.TRIGGER, lambda: checker.checkAdditionalRealTimeModeConstraints(plan, spoken)
    yield Cause.PLAN, lambda: _correct(frame, lambda: checker.checkForStreaming(plan, spoken))
    if trigger.continuous and not (sink and sinks.in_batches(sink)):
        # The empty stream that stands for a source is of a kind that Spark does not read continuously.
        able = continuous.readable(frame)
        yield Cause.TRIGGER, lambda: _correct(frame, lambda: checker.checkForContinuous(able, spoken))


def _late_checks(
    frame: DataFrame, _plan: Any, _mode: OutputMode, trigger: Trigger, sink: str | None
) -> Iterator[tuple[Cause, Callable[[], object]]]:
    """What ends the query in its first batch: MicroBatchExecution."""
    if sink is not None:
        yield Cause.SINK, lambda: sinks.late(sink, trigger)
    if trigger.real_time:
        made: list[Any] = []
        yield Cause.PLAN, lambda: made.append(realtime.planned(frame))
        yield Cause.TRIGGER, lambda: realtime.check(frame, made[0])


def spark_mode(jvm: Any, mode: OutputMode) -> Any:
    """Spark's object for an output mode."""
    modes = jvm.org.apache.spark.sql.streaming.OutputMode
    return {"append": modes.Append, "update": modes.Update, "complete": modes.Complete}[mode]()


def _words(wrong: PySparkException) -> tuple[str, str]:
    """The sentence that says something, and `Spark says: …`."""
    first, why = complaints.words(wrong)
    rest = _HEADING.search(why)
    return (why[rest.end() :].split(". ")[0] if rest else first), why


def _checker(frame: DataFrame) -> Any:
    jvm: Any = frame.sparkSession._jvm
    return jvm.org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker


def _said(ask: Callable[[], object]) -> PySparkException | None:
    try:
        ask()
    except PySparkException as wrong:
        return wrong
    return None


def _correct(frame: DataFrame, ask: Callable[[], object]) -> None:
    """Ask with every check switched on, whatever the session says; leave the session as it was."""
    conf = frame.sparkSession.conf
    silenced = [key for key in _SILENCERS if conf.get(key) != "true"]
    for key in silenced:
        conf.set(key, "true")
    try:
        ask()
    finally:
        for key in silenced:
            conf.set(key, "false")


def _interval(frame: DataFrame, trigger: Trigger) -> None:
    """A real-time trigger has a least length."""
    least = Duration(str(frame.sparkSession.conf.get(_LEAST))).micros // 1000
    given = trigger.real_time.micros // 1000 if trigger.real_time else least
    if given < least:
        words = {"interval": str(given), "minBatchDuration": str(least)}
        raise sinks.spark_error(
            frame.sparkSession._jvm, "INVALID_STREAMING_REAL_TIME_MODE_TRIGGER_INTERVAL", words
        )


def _node(wrong: Any) -> Any:
    """The operator in a Java exception of the analyser, or None."""
    java = getattr(wrong, "_origin", None)
    if java is None or java.getClass().getSimpleName() != "ExtendedAnalysisException":
        return None
    plan = java.plan()
    return plan.get() if plan.isDefined() else None


def _aggregate(plan: Any) -> Any:
    """The highest aggregation of a stream: Spark looks at this one and does not name it."""
    if plan.getClass().getSimpleName() == "Aggregate" and plan.isStreaming():
        return plan
    inputs = plan.children()
    below = (_aggregate(inputs.apply(index)) for index in range(inputs.size()))
    return next((found for found in below if found is not None), None)
