"""Plans with Python's own functions with state, beside the suite's with Scala's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F
from pyspark.sql.streaming import StatefulProcessor

from spark.checking.compat.cases import APPEND, COMPLETE, UPDATE, Case, counted, equal_times

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import DataFrame

    from spark.checking.compat.cases import Frames

GIVEN = "a INT, ts TIMESTAMP"
LIMIT = "Detected pattern of possible 'correctness' issue"


class Nothing(StatefulProcessor):
    """A processor that keeps nothing; it is planned and never run."""

    def init(self, handle: Any) -> None:
        """Ask for no state."""

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:  # noqa: ARG002, N802, N803
        """Give nothing."""
        yield from ()

    def close(self) -> None:
        """Let nothing go."""


def with_state(frame: DataFrame, mode: str, timeout: str = "NoTimeout") -> DataFrame:
    """`applyInPandasWithState` by the number; its time is a plain column again."""
    return frame.groupBy("a").applyInPandasWithState(lambda *_: iter(()), GIVEN, "n INT", mode, timeout)


def in_pandas(frame: DataFrame, mode: str, time: str = "None", column: str = "") -> DataFrame:
    """`transformWithStateInPandas` by the number."""
    return frame.groupBy("a").transformWithStateInPandas(
        Nothing(), GIVEN, mode, time, eventTimeColumnName=column
    )


def by_row(frame: DataFrame, mode: str, time: str = "None", column: str = "") -> DataFrame:
    """`transformWithState` by the number."""
    return frame.groupBy("a").transformWithState(Nothing(), GIVEN, mode, time, eventTimeColumnName=column)


def twins() -> Iterator[Case]:
    """All of them."""
    yield from _with_state()
    yield from _with_state_in_chains()
    for name, kind in (("transformWithStateInPandas", in_pandas), ("transformWithState", by_row)):
        yield from _transform(name, kind)


def _case(sense: str, mode: Any, plan: Callable[[Frames], DataFrame], refused: str = "") -> Case:
    return Case(sense, mode, plan, refused, twin=True)


def _with_state() -> Iterator[Case]:
    name = "applyInPandasWithState"
    other = f"{name} in %s mode is not supported with %s output mode"
    none = "no streaming aggregations"
    yield _case(f"{name}(update) in update", UPDATE, lambda x: with_state(x.s1, "update"))
    yield _case(
        f"{name}(update) in append",
        APPEND,
        lambda x: with_state(x.s1, "update"),
        other % ("update", "Append"),
    )
    yield _case(f"{name}(update) in complete", COMPLETE, lambda x: with_state(x.s1, "update"), none)
    yield _case(f"{name}(append) in append", APPEND, lambda x: with_state(x.s1, "append"))
    yield _case(
        f"{name}(append) in update",
        UPDATE,
        lambda x: with_state(x.s1, "append"),
        other % ("append", "Update"),
    )
    yield _case(f"{name}(append) in complete", COMPLETE, lambda x: with_state(x.s1, "append"), none)
    for mode in (APPEND, UPDATE, COMPLETE):
        yield _case(
            f"{name}(update) after an aggregation in {mode}",
            mode,
            lambda x: with_state(counted(x.w1, "a", "ts"), "update"),
            f"{name} in update mode is not supported with aggregation",
        )
        yield _case(
            f"{name}(append) before an aggregation in {mode}",
            mode,
            lambda x: counted(with_state(x.s1, "append").withWatermark("ts", "1 second"), "ts"),
        )
    for mode in ("append", "update"):
        yield _case(
            f"{name}({mode}) of a table", APPEND, lambda x, mode=mode: x.inside(with_state(x.b1, mode))
        )
        yield _case(
            f"{name}({mode}) of a table in update",
            UPDATE,
            lambda x, mode=mode: x.inside(with_state(x.b1, mode)),
        )
    event = "EventTimeTimeout"
    yield _case(
        f"{name} with an event-time timeout, no watermark",
        UPDATE,
        lambda x: with_state(x.s1, "update", event),
        "Watermark must be specified",
    )
    yield _case(f"{name} with an event-time timeout", UPDATE, lambda x: with_state(x.w1, "update", event))
    yield _case(
        f"two {name}",
        APPEND,
        lambda x: with_state(with_state(x.s1, "append"), "append"),
        "Multiple applyInPandasWithStates",
    )


def _with_state_in_chains() -> Iterator[Case]:
    name, event, processing = "applyInPandasWithState", "EventTimeTimeout", "ProcessingTimeTimeout"

    def timed(x: Frames, timeout: str) -> DataFrame:
        return with_state(x.w1, "append", timeout).withWatermark("ts", "1 second")

    for mode in (APPEND, UPDATE):
        yield _case(
            f"{name}(append) after an aggregation in {mode}",
            mode,
            lambda x: with_state(counted(x.w1, "a", "ts"), "append"),
            f"{name} in append mode is not supported after aggregation",
        )
    yield _case(
        f"{name} by event time, then an aggregation", APPEND, lambda x: counted(timed(x, event), "ts"), LIMIT
    )
    yield _case(
        f"{name} by processing time, then an aggregation",
        APPEND,
        lambda x: counted(timed(x, processing), "ts"),
    )
    yield _case(
        f"{name} by event time, then duplicates by time",
        APPEND,
        lambda x: timed(x, event).dropDuplicates(["ts"]),
        LIMIT,
    )
    yield _case(f"{name}, then duplicates", APPEND, lambda x: timed(x, "NoTimeout").dropDuplicates(["a"]))
    for how in ("inner", "left", "right"):
        yield _case(
            f"a {how} join after {name} by event time",
            APPEND,
            lambda x, how=how: x.w3.join(timed(x, event), F.col("vs") == F.col("ts"), how),
            LIMIT,
        )
        yield _case(
            f"{name} after a {how} join",
            APPEND,
            lambda x, how=how: with_state(equal_times(x.w1, x.s2, how), "append"),
        )
    yield _case(
        f"{name} after duplicates", APPEND, lambda x: with_state(x.w1.dropDuplicates(["a"]), "append")
    )


def _transform(name: str, kind: Callable[..., DataFrame]) -> Iterator[Case]:
    none = "no streaming aggregations"
    for mode in (APPEND, UPDATE):
        yield _case(f"{name} in {mode}", mode, lambda x, mode=mode: kind(x.s1, str(mode)))
        yield _case(
            f"{name} by event time in {mode}", mode, lambda x, mode=mode: kind(x.w1, str(mode), "EventTime")
        )
        yield _case(
            f"{name} of a table in {mode}", mode, lambda x, mode=mode: x.inside(kind(x.b1, str(mode)))
        )
    yield _case(f"{name} in complete", COMPLETE, lambda x: kind(x.s1, "complete"), none)
    yield _case(f"{name}(update) in append", APPEND, lambda x: kind(x.s1, "update"))
    yield _case(f"{name}(append) in update", UPDATE, lambda x: kind(x.s1, "append"))
    yield _case(f"{name} after an aggregation", APPEND, lambda x: kind(counted(x.w1, "a", "ts"), "append"))
    yield _case(
        f"{name} after an aggregation in update",
        UPDATE,
        lambda x: kind(counted(x.w1, "a", "ts"), "update"),
        LIMIT,
    )
    yield _case(
        f"{name} with its own time, then an aggregation",
        APPEND,
        lambda x: counted(kind(x.w1, "append", "EventTime", "ts"), "ts"),
    )
    yield _case(
        f"{name} without a time, then an aggregation",
        APPEND,
        lambda x: counted(kind(x.w1, "append"), "ts"),
        "streaming aggregations without watermark",
    )
    yield _case(f"two {name}", APPEND, lambda x: kind(kind(x.s1, "append"), "append"))
    yield _case(f"two {name} in update", UPDATE, lambda x: kind(kind(x.s1, "update"), "update"))
    yield _case(f"{name} after duplicates", APPEND, lambda x: kind(x.w1.dropDuplicates(["a"]), "append"))
    for how in ("inner", "left"):
        yield _case(
            f"{name} after a {how} join",
            APPEND,
            lambda x, how=how: kind(equal_times(x.w1, x.s2, how), "append"),
        )
    yield _case(
        f"{name}, then a sort",
        APPEND,
        lambda x: kind(x.s1, "append").orderBy("a"),
        "Sorting is not supported",
    )
