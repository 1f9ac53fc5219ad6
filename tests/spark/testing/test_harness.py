"""The stage by hand: cases side by side, a batch that hangs, views that are watched."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from millstream.diagnostics.failure import MillstreamError
from millstream.testing.files.loader import load_text
from millstream.testing.harness.harness import Harness
from millstream.testing.model import Step

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from millstream.testing.model import Case

SPEC = """
pipeline:
  name: shop
  spark: {spark.sql.shuffle.partitions: 3}
  sources:
    clicks:
      kafka: {bootstrap_servers: "localhost:1", subscribe: clicks}
      schema: {id: string, at: timestamp}
  views:
    shown: SELECT id, %s AS told FROM clicks
  queries:
    shown: {to: {memory: shown}}
tests:
  one:
    steps: [{feed: {clicks: [{id: a}]}}]
"""
COUNTS = """
pipeline:
  name: shop
  sources: {clicks: {json: clicks, schema: {id: string}}}
  views: {counts: SELECT count(*) AS many FROM clicks}
  queries: {counts: {output_mode: complete, to: {memory: counts}}}
tests:
  one:
    steps: [{feed: {clicks: [{id: a}]}}]
"""
ROWS = {"clicks": ({"id": "a"},)}


def case_of(folder: Path, told: str) -> Case:
    """A case whose view tells that expression."""
    suite = load_text("case.yml", SPEC % told, folder / "case.yml", lambda _: {})
    assert [finding.message for finding in suite.findings] == []
    return suite.cases[0]


def empty(case: Case) -> Step:
    """A step that expects nothing."""
    return Step((), case.steps[0].expected, case.where)


def test_stages_that_are_open_at_once_do_not_see_each_other(spark: SparkSession, tmp_path: Path) -> None:
    case, other = case_of(tmp_path, "1"), case_of(tmp_path, "2")

    with Harness(spark, case, tmp_path / "1") as first, Harness(spark, other, tmp_path / "2") as second:
        first.feed(ROWS)
        second.feed({"clicks": ({"id": "b"}, {"id": "c"})})
        messages = [stage.run_step(empty(case)).rows[""] for stage in (first, second)]

    assert messages == [
        ({"id": "a", "told": 1},),
        ({"id": "b", "told": 2}, {"id": "c", "told": 2}),
    ]


def test_what_was_planned_for_a_case_is_not_kept_after_it(spark: SparkSession, tmp_path: Path) -> None:
    with Harness(spark, case_of(tmp_path, "1"), tmp_path / "stage") as stage:
        stage.feed(ROWS)
        left = weakref.ref(stage._query)
    del stage
    gc.collect()

    assert left() is None


def test_a_case_leaves_no_view_and_no_setting_behind(spark: SparkSession, tmp_path: Path) -> None:
    before = spark.conf.get("spark.sql.shuffle.partitions")
    # Other tests of the run may have left views of these names.
    for name in ("clicks", "shown"):
        spark.catalog.dropTempView(name)

    with Harness(spark, case_of(tmp_path, "1"), tmp_path / "stage") as stage:
        stage.feed(ROWS)
        within = stage.session.conf.get("spark.sql.shuffle.partitions")

    assert (within, spark.conf.get("spark.sql.shuffle.partitions")) == ("3", before)
    assert [name for name in ("clicks", "shown") if spark.catalog.tableExists(name)] == []


def test_a_batch_that_hangs_is_a_fault_and_the_next_case_is_played(
    spark: SparkSession, tmp_path: Path
) -> None:
    hanging = case_of(tmp_path, "java_method('java.lang.Thread', 'sleep', 600000L)")

    with (
        pytest.raises(MillstreamError, match=r"query 'shown' did not end a batch within 1 s"),
        Harness(spark, hanging, tmp_path / "1", limit=1) as stage,
    ):
        stage.feed(ROWS)

    with Harness(spark, case_of(tmp_path, "1"), tmp_path / "2") as stage:
        stage.feed(ROWS)
        assert stage.run_step(empty(hanging)).rows[""]


def test_a_view_is_watched_by_name(spark: SparkSession, tmp_path: Path) -> None:
    case = case_of(tmp_path, "1")

    with Harness(spark, case, tmp_path / "stage", watched=["clicks"]) as stage:
        stage.feed(ROWS)
        step_result = stage.run_step(empty(case))
        stage.restart()
        stage.feed(ROWS)
        two = stage.run_step(empty(case))

    assert [row["id"] for row in step_result.rows["clicks"] + two.rows["clicks"]] == ["a", "a"]


def test_a_column_that_the_source_has_not_is_told(spark: SparkSession, tmp_path: Path) -> None:
    with (
        Harness(spark, case_of(tmp_path, "1"), tmp_path / "stage") as stage,
        pytest.raises(MillstreamError, match="source 'clicks' has no column 'ident'"),
    ):
        stage.feed({"clicks": ({"ident": "a"},)})


def test_a_step_tells_its_batches(spark: SparkSession, tmp_path: Path) -> None:
    case = case_of(tmp_path, "1")

    with Harness(spark, case, tmp_path / "stage") as stage:
        messages = []
        for _ in range(3):
            stage.feed(ROWS)
            messages.append(stage.run_step(empty(case)).batches)

    assert messages == [(0,), (1,), (2,)]


def test_each_batch_is_reported_whatever_number_of_reports_a_pipeline_retains(
    spark: SparkSession, tmp_path: Path
) -> None:
    case = case_of(tmp_path, "1")
    setting = {"spark.sql.streaming.numRecentProgressUpdates": 2}
    case = replace(case, pipeline=case.pipeline.model_copy(update={"spark": setting}))

    with Harness(spark, case, tmp_path / "stage") as stage:
        messages = []
        for number in range(5):
            if number == 2:
                stage.restart(case.pipeline)
            stage.feed(ROWS)
            messages.append(stage.run_step(empty(case)).batches)

    assert messages == [(0,), (1,), (2,), (3,), (4,)]


def test_settings_of_a_later_version_hold_from_its_restart_on(spark: SparkSession, tmp_path: Path) -> None:
    setting = "spark.sql.session.timeZone"
    case = case_of(tmp_path, "current_timezone()")
    tokyo = case.pipeline.model_copy(update={"spark": {**case.pipeline.spark, setting: "Asia/Tokyo"}})
    messages = []

    with Harness(spark, case, tmp_path / "stage") as stage:
        for later in (None, tokyo, case.pipeline):
            stage.restart(later)
            stage.feed(ROWS)
            messages += [row["told"] for row in stage.run_step(empty(case)).rows[""]]

    assert messages == ["UTC", "Asia/Tokyo", "UTC"]


def test_a_case_that_is_played_again_on_a_stage_begins_anew(spark: SparkSession, tmp_path: Path) -> None:
    suite = load_text("case.yml", COUNTS, tmp_path / "case.yml", lambda _: {})
    (case,) = suite.cases
    messages = []

    with Harness(spark, case, tmp_path / "1") as stage:
        for number in range(2, 4):
            stage.feed(ROWS)
            stage.feed(ROWS)
            step_result = stage.run_step(empty(case))
            messages.append((step_result.batches, step_result.rows[""]))
            assert stage.can_reuse(case)
            stage.reuse_for(case, tmp_path / str(number))

    assert messages == [((0, 1), ({"many": 2},))] * 2
    assert not stage.can_reuse(case_of(tmp_path, "1"))
