"""Our check of a pipeline drawn at random says what Spark says when its query is really started."""

from __future__ import annotations

import os
import re
from collections import Counter
from random import Random
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

import sweep
from millstream.checking.check import check
from millstream.checking.compat import error_parser
from millstream.pipeline.spec_file import load_text
from spark.checking.compat.draws import COLUMNS, STREAMS, TABLES, Drawn, draw

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

# A nightly run draws 2,000 and more, from another seed each night.
DRAWS = sweep.size(30, 200, "MILLSTREAM_DRAWS")
SEED = int(os.environ.get("MILLSTREAM_SEED", "42"))
# So many tests, so that a failing draw does not hide the others.
PARTS = 10

# What ends a real-time query in its first batch, which start() does not wait for.
LATE = ("STREAMING_REAL_TIME_MODE.OPERATOR_OR_SINK_NOT_IN_ALLOWLIST", "without equality predicate")
_NUMBERED = re.compile(r"#\d+L?|L\d+_\d+")


def by_spark(spark: SparkSession, drawn: Drawn, empty: str, checkpoint: Path) -> str:
    """What Spark says of the same views, made without us, when the query is started; empty when it starts."""
    try:
        frame = _built(spark, drawn, empty)
        # Real-time mode takes few sinks; others are quicker to stop.
        kind = "console" if "real_time" in drawn.trigger else "noop"
        writer = frame.writeStream.format(kind).outputMode(drawn.mode)
        writer.option("checkpointLocation", str(checkpoint))
        if options := _options(drawn.trigger):
            writer.trigger(**options)
        writer.start().stop()
    except PySparkException as error:
        return error_parser.split_message(error)[1]
    return ""


def _built(spark: SparkSession, drawn: Drawn, empty: str) -> DataFrame:
    ddl = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
    for name in filter(drawn.reads, STREAMS):
        if "continuous" in drawn.trigger:
            # Spark reads no file continuously.
            rate = spark.readStream.format("rate").load()
            stream = rate.selectExpr("CAST(value AS INT) AS k", "timestamp AS t", "value AS n")
        else:
            stream = spark.readStream.schema(ddl).json(empty)
        (stream.withWatermark("t", delay) if (delay := STREAMS[name]) else stream).createOrReplaceTempView(
            name
        )
    for name in filter(drawn.reads, TABLES):
        spark.read.schema(ddl).json(empty).createOrReplaceTempView(name)
    for view in drawn.views:
        if view.call:
            frame = eval(f"frame.{view.call}", {"frame": spark.table(view.of), "F": F})
        else:
            frame = spark.sql(view.sql)
        frame.createOrReplaceTempView(view.name)
    return spark.table(drawn.views[-1].name)


def _options(trigger: str) -> dict[str, object]:
    if "continuous" in trigger:
        return {"continuous": "10 seconds"}
    if "real_time" in trigger:
        return {"realTime": "10 seconds"}
    return (
        {"availableNow": True} if trigger == "available_now" else {"processingTime": trigger or "0 seconds"}
    )


@pytest.fixture(scope="module")
def tally() -> Counter[str]:
    """How many draws started, and how many were refused where."""
    return Counter()


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("part", range(PARTS))
def test_a_drawn_pipeline_is_judged_as_spark_judges_it(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tally: Counter[str], part: int
) -> None:
    monkeypatch.chdir(tmp_path)
    empty = tmp_path / "empty"
    empty.mkdir()
    error = []
    for number in range(part, DRAWS, PARTS):
        drawn = draw(Random(f"{SEED}/{number}"), number)
        (tmp_path / f"{drawn.module}.py").write_text(drawn.python())

        checked = check(load_text("pipeline.yml", drawn.spec(), tmp_path, {}), spark)
        reference = by_spark(spark, drawn, str(empty), tmp_path / "checkpoints" / str(number))

        finding = checked.verdict[0] if checked.verdict else None
        finding = (
            None if finding and not reference and any(words in finding.why for words in LATE) else finding
        )
        text = _NUMBERED.sub("", finding.why) if finding else ""
        tally[f"{finding.code} {finding.message.partition(': ')[2]}" if finding else "starts"] += 1
        if text != _NUMBERED.sub("", reference) or (reference and not checked.has_errors):
            error.append(
                f"{SEED}/{number}\n{drawn.spec()}\n{drawn.python()}\nours: {text}\nSpark: {reference}"
            )
    assert not error, "\n\n".join(error[:3])


def test_draws_are_refused_and_accepted_alike(
    tally: Counter[str], record_testsuite_property: Callable[[str, object], None]
) -> None:
    if not tally:
        pytest.skip("counts what the draws of the same run gave")
    record_testsuite_property("tally", dict(tally.most_common()))

    kinds = Counter(dict.fromkeys(("starts", "MS111", "MS311"), 0))
    for output, times in tally.items():
        kinds[output.partition(" ")[0]] += times

    assert min(kinds["starts"], kinds["MS111"], kinds["MS311"]) > kinds.total() // 40, kinds
