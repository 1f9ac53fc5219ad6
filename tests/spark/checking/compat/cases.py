"""What Spark 4.2 accepts and refuses of plans by output mode: the cases of its own suite, as far as PySpark has them.

The facts are those of `UnsupportedOperationsSuite` in the newest text of it that is at hand, which is older than
Spark 4.2: where 4.2 judges otherwise, the case says so. `INEXPRESSIBLE` counts what Python has no words for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyspark.sql import DataFrame, SparkSession

APPEND, UPDATE, COMPLETE = OutputMode.APPEND, OutputMode.UPDATE, OutputMode.COMPLETE

# Cases of the suite that PySpark cannot say, by why.
INEXPRESSIBLE = {
    "mapGroupsWithState and flatMapGroupsWithState are Scala's and Java's; twins.py has Python's kin": 50,
    "a cogroup of Datasets is Scala's and Java's": 4,
    "a filter by a typed function is Scala's and Java's": 1,
    "a command inside a plan: Spark runs a command as soon as Python says it": 1,
}
SUITE = 207
"""All cases of the text that these are taken from."""


@dataclass(frozen=True)
class Frames:
    """Tables of two columns: a number and a time. `s` are streams, `w` streams with a watermark, `b` are static."""

    s1: DataFrame
    s2: DataFrame
    s3: DataFrame
    b1: DataFrame
    b2: DataFrame

    @classmethod
    def of(cls, spark: SparkSession, folder: str) -> Frames:
        """Empty tables; every stream has a folder of its own kind in the same empty folder."""
        schemas = ("a INT, ts TIMESTAMP", "b INT, us TIMESTAMP", "c INT, vs TIMESTAMP")
        streams = [spark.readStream.schema(schema).json(folder) for schema in schemas]
        return cls(*streams, *(spark.read.schema(schema).json(folder) for schema in schemas[:2]))

    @property
    def w1(self) -> DataFrame:
        return self.s1.withWatermark("ts", "1 second")

    @property
    def w2(self) -> DataFrame:
        return self.s2.withWatermark("us", "1 second")

    @property
    def w3(self) -> DataFrame:
        return self.s3.withWatermark("vs", "1 second")

    def inside(self, table: DataFrame) -> DataFrame:
        """A stream whose plan holds a static table."""
        return self.s3.crossJoin(table)


@dataclass(frozen=True)
class Case:
    """A plan, a mode, and what Spark says."""

    sense: str
    mode: OutputMode
    plan: Callable[[Frames], DataFrame]
    refused: str = ""
    """Words of the refusal; empty for a plan that starts."""
    as_table: bool = False
    """Is it about the plan read as a table, and not about a query?"""
    twin: bool = False
    """Is it of our own, beside the suite's?"""


def counted(frame: DataFrame, *keys: str) -> DataFrame:
    """One row a group."""
    return frame.groupBy(*keys).agg(F.count("*").alias("n"))


def equal_times(left: DataFrame, right: DataFrame, how: str) -> DataFrame:
    """A join on the times of both sides."""
    return left.join(right, F.col("ts") == F.col("us"), how)


def cases() -> Iterator[Case]:
    """All of them."""
    yield from _tables()
    yield from _aggregations()
    yield from _joins_of_kinds()
    yield from _joins_of_streams()
    yield from _chains()
    yield from _chained_joins()
    yield from _sets()
    yield from _list_other_cases()
    yield from _modes()


def _tables() -> Iterator[Case]:
    read = "Queries with streaming sources must be executed with writeStream.start()"
    yield Case("a static table is read", APPEND, lambda x: x.b1, as_table=True)
    yield Case("a stream is read as a table", APPEND, lambda x: x.s1, read, as_table=True)
    yield Case(
        "a column of a stream is read as a table", APPEND, lambda x: x.s1.select("a"), read, as_table=True
    )
    yield Case("a query without a stream", APPEND, lambda x: x.b1.select("a"), "WRITE_STREAM_NOT_ALLOWED")


def _aggregations() -> Iterator[Case]:
    without = "streaming aggregations without watermark"
    yield Case("two aggregations of a table", APPEND, lambda x: x.inside(counted(counted(x.b1, "a"))))
    yield Case(
        "one of two is of a stream", UPDATE, lambda x: counted(x.b1).crossJoin(counted(x.s2).toDF("m"))
    )
    yield Case("an aggregation in update", UPDATE, lambda x: counted(x.s1))
    yield Case("an aggregation in complete", COMPLETE, lambda x: counted(x.s1))
    yield Case("an aggregation by a time with a watermark", APPEND, lambda x: counted(x.w1, "ts"))
    yield Case("an aggregation without a watermark", APPEND, lambda x: counted(x.s1), without)
    yield Case("a distinct aggregate of a table", APPEND, lambda x: x.inside(x.b1.agg(F.count_distinct("a"))))
    yield Case(
        "a distinct aggregate", COMPLETE, lambda x: x.s1.agg(F.count_distinct("a")), "Distinct aggregations"
    )
    yield Case(
        "duplicates dropped before an aggregation",
        APPEND,
        lambda x: counted(x.w1.dropDuplicates(["a"]), "ts"),
    )
    yield Case("duplicates of a table dropped", APPEND, lambda x: x.inside(x.b1.dropDuplicates(["a"])))


def _pairs(
    sense: str,
    mode: OutputMode,
    join: Callable[[DataFrame, DataFrame, Frames], DataFrame],
    words: Sequence[str],
) -> Iterator[Case]:
    """Stream and stream, stream and table, table and stream, table and table; the last is never refused."""
    both, left, right = words
    yield Case(f"{sense}, stream and stream", mode, lambda x: join(x.s1, x.s2, x), both)
    yield Case(f"{sense}, stream and table", mode, lambda x: join(x.s1, x.b2, x), left)
    yield Case(f"{sense}, table and stream", mode, lambda x: join(x.b1, x.s2, x), right)
    yield Case(f"{sense}, table and table", mode, lambda x: x.inside(join(x.b1, x.b2, x)))


def _joins_of_kinds() -> Iterator[Case]:
    none = ("", "", "")
    unbound = "without a watermark in the join keys"

    def join(how: str) -> Callable[[DataFrame, DataFrame, Frames], DataFrame]:
        return lambda left, right, _: left.join(right, F.col("a") == F.col("b"), how)

    def twice(left: DataFrame, right: DataFrame, x: Frames) -> DataFrame:
        joined = left.join(right, F.col("a") == F.col("b"))
        return joined.join(x.s3, F.col("a") == F.col("c")) if joined.isStreaming else joined

    yield from _pairs("an inner join", APPEND, join("inner"), none)
    yield from _pairs("two inner joins", APPEND, twice, none)
    # Spark 4.2 takes it; the suite of 3.5 has it refused.
    yield from _pairs("an inner join in update", UPDATE, join("inner"), none)
    full = (
        "FullOuter joins with streaming DataFrames/Datasets on the left",
        "FullOuter joins with streaming",
    )
    yield from _pairs("a full outer join", APPEND, join("full"), (unbound, *full))
    for how, name in (("left", "LeftOuter"), ("left_semi", "LeftSemi"), ("left_anti", "LeftAnti")):
        both = f"{name} joins with a streaming" if how == "left_anti" else unbound
        right = both if how == "left_anti" else f"{name} join with a streaming DataFrame/Dataset on the right"
        yield from _pairs(f"a {how} join", APPEND, join(how), (both, "", right))
    yield from _pairs(
        "a right outer join", APPEND, join("right"), (unbound, "RightOuter join with a streaming", "")
    )


def _joins_of_streams() -> Iterator[Case]:
    unbound = "without a watermark in the join keys, or a watermark on the nullable side"
    for how in ("left", "right", "full", "left_semi"):
        sense = f"a {how} join of streams"
        # Spark 4.2 joins left semi in update mode, where the suite of 3.5 has it refused; the times must be bound.
        update = unbound if how == "left_semi" else "in Update output mode, only in Append"
        yield Case(f"{sense} in update", UPDATE, lambda x, how=how: equal_times(x.s1, x.s2, how), update)
        yield Case(
            f"{sense} in complete",
            COMPLETE,
            lambda x, how=how: counted(equal_times(x.s1, x.s2, how)),
            "in Complete output mode, only in Append",
        )
        yield Case(f"{sense}, left watermark", APPEND, lambda x, how=how: equal_times(x.w1, x.s2, how))
        yield Case(f"{sense}, right watermark", APPEND, lambda x, how=how: equal_times(x.s1, x.w2, how))
        yield Case(f"{sense}, no watermark", APPEND, lambda x, how=how: equal_times(x.s1, x.s2, how), unbound)
        for sign, words in ((">", ""), ("<", unbound)):

            def bound(x: Frames, how: str = how, sign: str = sign) -> DataFrame:
                if how == "right":
                    return x.w1.join(x.s2, F.expr(f"us {sign} ts + INTERVAL 10 SECONDS"), how)
                return x.s1.join(x.w2, F.expr(f"ts {sign} us + INTERVAL 10 SECONDS"), how)

            yield Case(f"{sense}, a bound {sign}", APPEND, bound, words)


def _chains() -> Iterator[Case]:
    limit = "Detected pattern of possible 'correctness' issue"

    def twice(x: Frames) -> DataFrame:
        return counted(counted(x.w1, "ts"), "ts")

    def interval(x: Frames) -> DataFrame:
        return x.w1.join(x.w2, F.expr("a = b AND ts > us + INTERVAL 10 SECONDS"))

    yield Case("two aggregations in append", APPEND, twice)
    yield Case("two aggregations in update", UPDATE, twice, limit)
    yield Case("two aggregations in complete", COMPLETE, twice, limit)
    yield Case("a join bound in time, then an aggregation", APPEND, lambda x: counted(interval(x), "ts"))
    yield Case(
        "a join on a key, then an aggregation",
        APPEND,
        lambda x: counted(x.w1.join(x.w2, F.col("a") == F.col("b")), "ts"),
    )
    for mode in (UPDATE, COMPLETE):
        yield Case(
            f"duplicates by time after an aggregation in {mode}",
            mode,
            lambda x: counted(x.w1, "ts").dropDuplicates(["ts"]),
            limit,
        )
        yield Case(
            f"duplicates not by time after an aggregation in {mode}",
            mode,
            lambda x: counted(x.w1, "ts").dropDuplicates(["n"]),
        )
    yield Case("a bound join, then duplicates by time", APPEND, lambda x: interval(x).dropDuplicates(["ts"]))
    yield Case("a bound join, then duplicates", APPEND, lambda x: interval(x).dropDuplicates(["a"]))


def _chained_joins() -> Iterator[Case]:
    def onto(x: Frames, right: DataFrame, how: str) -> DataFrame:
        return x.w3.join(right, F.col("vs") == F.col("ts"), how)

    for how in ("inner", "left", "right", "full"):

        def near(x: Frames, how: str = how) -> DataFrame:
            return x.w1.join(x.w2, F.expr("ts = us AND ts < us + INTERVAL 10 SECONDS"), how)

        def same(x: Frames, how: str = how) -> DataFrame:
            return equal_times(x.w1, x.s2, how)

        yield Case(
            f"a {how} join by times and a bound, then an aggregation",
            APPEND,
            lambda x, f=near: counted(f(x), "ts"),
        )
        yield Case(f"one {how} join", APPEND, same)
        yield Case(
            f"a {how} join by times, then an aggregation", APPEND, lambda x, f=same: counted(f(x), "ts")
        )
        for then in ("inner", "left", "right"):
            yield Case(
                f"a {then} join after a {how} join", APPEND, lambda x, f=same, then=then: onto(x, f(x), then)
            )
        yield Case(f"duplicates after a {how} join", APPEND, lambda x, f=same: f(x).dropDuplicates(["ts"]))
    yield Case("one aggregation in append", APPEND, lambda x: counted(x.w1, "ts"))
    yield Case(
        "two aggregations, the second wider", APPEND, lambda x: counted(counted(x.w1, "ts", "a"), "ts")
    )
    for how in ("inner", "left", "right"):
        yield Case(
            f"a {how} join after an aggregation", APPEND, lambda x, how=how: onto(x, counted(x.w1, "ts"), how)
        )
    yield Case(
        "duplicates after an aggregation", APPEND, lambda x: counted(x.w1, "ts").dropDuplicates(["ts"])
    )
    yield Case("an aggregation after duplicates", APPEND, lambda x: counted(x.w1.dropDuplicates(["a"]), "ts"))
    for how in ("inner", "left", "right"):
        yield Case(
            f"a {how} join after duplicates",
            APPEND,
            lambda x, how=how: onto(x, x.w1.dropDuplicates(["ts"]), how),
        )


def _sets() -> Iterator[Case]:
    mixed = "Union between streaming and batch"
    yield from _pairs("a union", APPEND, lambda left, right, _: left.union(right), ("", mixed, mixed))
    right = "Except on a streaming DataFrame/Dataset on the right"
    yield from _pairs("except", APPEND, lambda left, other, _: left.subtract(other), (right, "", right))
    any_stream = ("Intersect of streaming",) * 3
    yield from _pairs("intersect", APPEND, lambda left, other, _: left.intersect(other), any_stream)


def _list_other_cases() -> Iterator[Case]:
    sort = "Sorting is not supported"
    number = "row_number() OVER (PARTITION BY a ORDER BY ts)"
    yield Case("a sort", APPEND, lambda x: x.s1.orderBy("a"), sort)
    yield Case("a sort of a table", APPEND, lambda x: x.inside(x.b1.orderBy("a")))
    yield Case("a sort of an aggregation in complete", COMPLETE, lambda x: counted(x.s1).orderBy("n"))
    yield Case(
        "a sort before an aggregation in complete", COMPLETE, lambda x: counted(x.s1.orderBy("a")), sort
    )
    yield Case("a sort of an aggregation in update", UPDATE, lambda x: counted(x.s1).orderBy("n"), sort)
    yield Case("a sample", APPEND, lambda x: x.s1.sample(0.1), "Sampling is not supported")
    yield Case("a sample of a table", APPEND, lambda x: x.inside(x.b1.sample(0.1)))
    yield Case(
        "a window over rows",
        APPEND,
        lambda x: x.s1.selectExpr(number),
        "NON_TIME_WINDOW_NOT_SUPPORTED_IN_STREAMING",
    )
    yield Case("a window over rows of a table", APPEND, lambda x: x.inside(x.b1.selectExpr(number)))
    yield Case(
        "an id that grows",
        APPEND,
        lambda x: x.s1.select(F.monotonically_increasing_id()),
        "monotonically_increasing_id() is not supported",
    )


def _modes() -> Iterator[Case]:
    without, none = "streaming aggregations without watermark", "no streaming aggregations"
    for mode, grouped, plain in ((APPEND, without, ""), (UPDATE, "", ""), (COMPLETE, "", none)):
        yield Case(f"{mode} with an aggregation", mode, lambda x: counted(x.s1, "a"), grouped)
        yield Case(f"{mode} without an aggregation", mode, lambda x: x.s1.where("a > 1"), plain)
