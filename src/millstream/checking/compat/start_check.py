"""Run the checks of Spark's `start()` on a query without starting it, and return Spark's own error."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException

from millstream.checking.compat import continuous_plan, error_hints, error_parser, real_time_mode, sink_modes
from millstream.spark import internals
from millstream.spec.duration import Duration
from millstream.spec.output_mode import OutputMode
from millstream.spec.trigger import Trigger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import DataFrame

# Settings that disable Spark's checks. Results would still be wrong, so the settings are ignored here.
_DISABLING_SETTINGS = ("spark.sql.streaming.statefulOperator.checkCorrectness.enabled",)
# Text that Spark puts before the sentence with the reason.
_HEADING = re.compile(r"Invalid streaming output mode: \w+\. |has the following limitation: ")
_ROW_WINDOW = "NON_TIME_WINDOW_NOT_SUPPORTED_IN_STREAMING"
_MIN_INTERVAL = "spark.sql.streaming.realTimeMode.minBatchDuration"


class RefusalCause(StrEnum):
    """The part of a query that must change before Spark accepts it."""

    MODE = "mode"
    """Spark accepts the plan in another output mode."""
    TRIGGER = "trigger"
    """Spark accepts the plan with the default trigger."""
    SINK = "sink"
    """Spark does not support this kind of sink in this output mode or with this trigger."""
    PLAN = "plan"
    """Spark accepts the plan in no output mode and with no trigger."""


@dataclass(frozen=True)
class Refusal:
    """Spark's reason for not starting a query."""

    cause: RefusalCause
    error_class: str
    """Spark's error class: `STREAMING_OUTPUT_MODE.UNSUPPORTED_OPERATION`. In older errors it contains a number."""
    sentence: str
    """The reason without a full stop, the error class and the SQL state."""
    why: str
    """Spark's text without the plan: `Spark says: [CLASS] …`."""
    modes: tuple[OutputMode, ...]
    """The output modes in which Spark accepts the same plan with the same trigger."""
    error: PySparkException
    """Spark's error."""
    is_late: bool = False
    """True if `start()` accepts the query, which then fails in its first batch."""
    node: Any = None
    """The JVM object of the refused operator or expression, or None if the whole query is refused."""

    @property
    def fix(self) -> str:
        """Return the fix, or "" if none is known."""
        return error_hints.find_hint(self.why, self.modes)

    def about(self, mode: OutputMode, trigger: Trigger) -> str:
        """Return the message to follow the query's name: `cannot run in output mode append: …`."""
        match self.cause:
            case RefusalCause.SINK if self.modes or not (trigger.real_time or trigger.continuous):
                how = f"in output mode {mode}"
            case RefusalCause.MODE:
                how = f"in output mode {mode}"
            case RefusalCause.TRIGGER | RefusalCause.SINK:
                how = f"with trigger {trigger}"
            case RefusalCause.PLAN:
                how = "as a stream"
        return f"cannot run {how}: {self.sentence}"

    @property
    def text(self) -> str:
        """Return Spark's whole message, with the plan if it contains one."""
        return error_parser.full_message(self.error)


def find_refusal(
    frame: DataFrame, mode: OutputMode, trigger: Trigger | None = None, sink: str | None = None
) -> Refusal | None:
    """Return the first refusal of `start()` or of the first batch, or None for a query that would run.

    `sink` is Spark's name of the format, or `foreach` or `foreachBatch`. None skips the checks that depend on it.
    Only the schema of the sources matters. Whether a reader supports a trigger is not checked.
    Spark's own switches for these checks (`unsupportedOperationCheck`, `checkCorrectness`) have no effect.
    Nothing runs and nothing is written. Makes a few calls into the JVM.
    """
    trigger = trigger or Trigger()
    plan = internals.analyzed_plan(frame)
    failure = _first_failure(frame, plan, mode, trigger, sink)
    if failure is None:
        return None
    error, cause, late = failure
    modes = tuple(other for other in OutputMode if _first_failure(frame, plan, other, trigger, sink) is None)
    if cause is RefusalCause.PLAN and modes:
        cause = RefusalCause.MODE
    sentence, why = _message(error)
    node = _node(error) or (_aggregate(plan) if "aggregations" in sentence and modes else None)
    if node is None and error.getCondition() == _ROW_WINDOW:
        node = _row_window(plan)
    return Refusal(cause, error.getCondition() or "", sentence, why, modes, error, late, node)


def find_batch_refusal(frame: DataFrame) -> Refusal | None:
    """Return Spark's refusal to read or write `frame` as a table: `count()`, `show()`, `write`."""
    plan = internals.analyzed_plan(frame)
    error = _error_of(lambda: _checker(frame).checkForBatch(plan))
    if error is None:
        return None
    sentence, why = _message(error)
    return Refusal(RefusalCause.PLAN, error.getCondition() or "", sentence, why, (), error, node=_node(error))


def _first_failure(
    frame: DataFrame, plan: Any, mode: OutputMode, trigger: Trigger, sink: str | None
) -> tuple[PySparkException, RefusalCause, bool] | None:
    """Return the first failed check in the order of `start()`, and whether it fails only in the first batch."""
    for checks, late in ((_checks, False), (_late_checks, True)):
        for cause, check in checks(frame, plan, mode, trigger, sink):
            if error := _error_of(check):
                return error, cause, late
    return None


def _checks(
    frame: DataFrame, plan: Any, mode: OutputMode, trigger: Trigger, sink: str | None
) -> Iterator[tuple[RefusalCause, Callable[[], object]]]:
    """Yield the checks of DataFrame.writeStream, DataStreamWriter, StreamingQueryManager and ResolveWriteToStream."""
    jvm: Any = internals.jvm(frame.sparkSession)
    checker = _checker(frame)
    output_mode = to_spark_mode(jvm, mode)
    yield RefusalCause.PLAN, lambda: frame.writeStream
    if sink is not None:
        yield RefusalCause.SINK, lambda: sink_modes.check_sink(jvm, sink, output_mode, trigger)
    if trigger.real_time:
        yield RefusalCause.TRIGGER, lambda: _check_interval(frame, trigger)
        yield RefusalCause.TRIGGER, lambda: checker.checkAdditionalRealTimeModeConstraints(plan, output_mode)
    yield (
        RefusalCause.PLAN,
        lambda: _with_all_checks(frame, lambda: checker.checkForStreaming(plan, output_mode)),
    )
    if trigger.continuous and not (sink and sink_modes.is_batch_sink(sink)):
        # Spark cannot read continuously the empty stream that replaces a source.
        readable = continuous_plan.to_continuous_plan(frame)
        yield (
            RefusalCause.TRIGGER,
            lambda: _with_all_checks(frame, lambda: checker.checkForContinuous(readable, output_mode)),
        )


def _late_checks(
    frame: DataFrame, _plan: Any, _mode: OutputMode, trigger: Trigger, sink: str | None
) -> Iterator[tuple[RefusalCause, Callable[[], object]]]:
    """Yield the checks of MicroBatchExecution, which end the query in its first batch."""
    if sink is not None:
        yield RefusalCause.SINK, lambda: sink_modes.check_first_batch(sink, trigger)
    if trigger.real_time:
        plans: list[Any] = []
        yield RefusalCause.PLAN, lambda: plans.append(real_time_mode.plan_batch(frame))
        yield RefusalCause.TRIGGER, lambda: real_time_mode.check_operators(frame, plans[0])


def to_spark_mode(jvm: Any, mode: OutputMode) -> Any:
    """Return Spark's object for an output mode."""
    modes = jvm.org.apache.spark.sql.streaming.OutputMode
    return {"append": modes.Append, "update": modes.Update, "complete": modes.Complete}[mode]()


def _message(error: PySparkException) -> tuple[str, str]:
    """Return the sentence with the reason, and `Spark says: …`."""
    first, why = error_parser.split_message(error)
    heading = _HEADING.search(why)
    return (why[heading.end() :].split(". ")[0] if heading else first), why


def _checker(frame: DataFrame) -> Any:
    jvm: Any = internals.jvm(frame.sparkSession)
    return jvm.org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker


def _error_of(call: Callable[[], object]) -> PySparkException | None:
    try:
        call()
    except PySparkException as error:
        return error
    return None


def _with_all_checks(frame: DataFrame, call: Callable[[], object]) -> None:
    """Call Spark with every check enabled, whatever the session's settings are, and restore them afterwards."""
    conf = frame.sparkSession.conf
    disabled = [key for key in _DISABLING_SETTINGS if conf.get(key) != "true"]
    for key in disabled:
        conf.set(key, "true")
    try:
        call()
    finally:
        for key in disabled:
            conf.set(key, "false")


def _check_interval(frame: DataFrame, trigger: Trigger) -> None:
    """Raise Spark's error if a real-time trigger is shorter than the minimum."""
    least = Duration(str(frame.sparkSession.conf.get(_MIN_INTERVAL))).micros // 1000
    interval = trigger.real_time.micros // 1000 if trigger.real_time else least
    if interval < least:
        parameters = {"interval": str(interval), "minBatchDuration": str(least)}
        raise sink_modes.spark_error(
            internals.jvm(frame.sparkSession), "INVALID_STREAMING_REAL_TIME_MODE_TRIGGER_INTERVAL", parameters
        )


def _node(error: Any) -> Any:
    """Return the operator in a Java exception of the analyser, or None."""
    java = getattr(error, "_origin", None)
    if java is None or java.getClass().getSimpleName() != "ExtendedAnalysisException":
        return None
    plan = java.plan()
    return plan.get() if plan.isDefined() else None


def _aggregate(plan: Any) -> Any:
    """Return the topmost aggregation of a stream. Spark checks this one and does not name it."""
    if plan.getClass().getSimpleName() == "Aggregate" and plan.isStreaming():
        return plan
    inputs = plan.children()
    below = (_aggregate(inputs.apply(index)) for index in range(inputs.size()))
    return next((aggregate for aggregate in below if aggregate is not None), None)


def _row_window(plan: Any) -> Any:
    """Return the first window function of the lowest window over rows of a stream, which Spark checks first.

    Spark's error does not name it.
    """
    inputs = plan.children()
    below = (_row_window(inputs.apply(index)) for index in range(inputs.size()))
    window = next((candidate for candidate in below if candidate is not None), None)
    if window is not None or plan.getClass().getSimpleName() != "Window" or not plan.isStreaming():
        return window
    return plan.windowExpressions().head()
