"""Pipelines that are right in any split, and pipelines that are wrong on purpose."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import sweep
from millstream.testing.files.loader import load
from millstream.testing.harness.session import create_case_folder
from millstream.testing.runner.execute_shared import SplitReplay
from millstream.testing.shuffle.batch_reference import Baseline
from millstream.testing.shuffle.report import format_details
from millstream.testing.shuffle.shuffle import ShuffleResult, shuffle
from millstream.testing.shuffle.splits import SplitBatch, list_items
from millstream.testing.shuffle.trial import SplitTrial

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from millstream.testing.model import Case

SPEC = """
name: shop
sources:
  clicks:
    json: clicks
    schema: {id: string, user: string, at: timestamp, n: int}
    watermark: {event_time: at, delay_threshold: 5 minutes}
  paid:
    json: paid
    schema: {id: string, at: timestamp, n: int}
    watermark: {event_time: at, delay_threshold: 5 minutes}
views:
  counts: |
    SELECT window.start AS begin, user, count(*) AS many, sum(n) AS total
    FROM clicks GROUP BY window(at, '10 minutes'), user
  dice: SELECT *, rand() AS luck FROM clicks
  batch_counts: {python: "batch_count:counted"}
  sessions: |
    SELECT session_window.start AS begin, user, count(*) AS many
    FROM clicks GROUP BY session_window(at, '5 minutes'), user
  bought: |
    SELECT c.id, c.user, p.n FROM clicks c JOIN paid p
    ON c.id = p.id AND p.at BETWEEN c.at AND c.at + INTERVAL 10 MINUTES
  unbought: |
    SELECT c.id, c.user FROM clicks c LEFT JOIN paid p
    ON c.id = p.id AND p.at BETWEEN c.at AND c.at + INTERVAL 10 MINUTES WHERE p.id IS NULL
queries:
  unbought: {to: {memory: unbought}}
  windows: {from: counts, output_mode: append, to: {memory: windows}}
  sessions: {output_mode: append, to: {memory: sessions}}
  bought: {to: {memory: bought}}
  counts: {output_mode: update, to: {memory: counts}}
  all_counts: {from: counts, output_mode: complete, to: {memory: all_counts}}
  dice: {to: {memory: dice}}
  batch_counts: {output_mode: append, to: {memory: batch_counts}}
  newest_counts: {from: batch_counts, output_mode: append, to: {delta: {path: newest, merge_on: [user]}}}
"""
# Spark calls it with the rows of one batch of each user.
PARTS = """
def counted(clicks):
    return clicks.groupBy("user").applyInPandas(count, "user string, many bigint")


def count(rows):
    return rows[["user"]].head(1).assign(many=len(rows))
"""
# The first split has a batch for each row.
SPLITS = sweep.size(2, 8, "MILLSTREAM_SPLITS")
CLICKS = [
    ("a", "ann", 1),
    ("b", "bob", 2),
    ("c", "ann", 4),
    ("b", "bob", 7),
    ("d", "ann", 31),
    ("e", "bob", 12),
]


def clicked(rows: list[tuple[str, str, int]]) -> list[dict[str, Any]]:
    return [
        {"id": item, "user": user, "at": f"2026-01-01 12:{minute:02}:00", "n": minute}
        for item, user, minute in rows
    ]


def case(folder: Path, query: str, feed: dict[str, Any]) -> Case:
    import json

    (folder / "pipeline.yml").write_text(SPEC)
    (folder / "batch_count.py").write_text(PARTS)
    file = folder / "test.yml"
    file.write_text(json.dumps({"tests": {"one": {"query": query, "steps": [{"feed": feed}]}}}))
    suite = load(file, lambda _: {})
    assert suite.cases, suite.findings
    return suite.cases[0]


def shuffled(spark: SparkSession, one: Case, many: int) -> ShuffleResult:
    with create_case_folder() as folder, SplitReplay(spark, folder) as replay:
        actual = shuffle(Baseline(spark, one, list_items(one)), replay.play, many, seed=1)
    text = "\n".join(format_details(actual, list_items(one), {}))
    assert actual.fault is None, actual.fault
    print(one.query, round(actual.seconds, 1), text)  # noqa: T201 - pytest shows it where a test fails
    return actual


@pytest.mark.timeout(600)
@pytest.mark.parametrize("query", ["counts", "all_counts"])
def test_a_right_pipeline_ends_with_the_batch_answer_in_any_split(
    spark: SparkSession, tmp_path: Path, query: str
) -> None:
    actual = shuffled(spark, case(tmp_path, query, {"clicks": clicked(CLICKS)}), SPLITS)

    assert actual.failure is None
    assert actual.splits == SPLITS


@pytest.mark.timeout(600)
@pytest.mark.parametrize("query", ["windows", "sessions", "bought"])
def test_rows_that_wait_for_the_watermark_or_for_each_other_end_right_in_any_split(
    spark: SparkSession, tmp_path: Path, query: str
) -> None:
    paid = [{key: row[key] for key in ("id", "at", "n")} for row in clicked([("a", "", 3), ("b", "", 9)])]
    more = {"paid": paid} if query == "bought" else {}

    actual = shuffled(spark, case(tmp_path, query, {"clicks": clicked(CLICKS), **more}), SPLITS)

    assert actual.failure is None
    assert actual.splits == SPLITS
    assert actual.notes == ()


@pytest.mark.timeout(600)
def test_a_wrong_pipeline_is_caught_and_shrunk_to_two_batches(spark: SparkSession, tmp_path: Path) -> None:
    actual = shuffled(spark, case(tmp_path, "dice", {"clicks": clicked(CLICKS)}), 50)

    assert actual.failure is not None
    assert len(actual.failure.trial.split) == 2
    assert not any(part.has_restart or part.crash for part in actual.failure.trial.split)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("query", ["batch_counts", "newest_counts"])
def test_an_aggregate_over_the_batch_is_caught_and_shrunk_to_two_batches(
    spark: SparkSession, tmp_path: Path, query: str
) -> None:
    actual = shuffled(spark, case(tmp_path, query, {"clicks": clicked(CLICKS)}), 50)

    assert actual.failure is not None
    small = actual.failure.trial.split
    assert [len(part.items) for part in small] == [1, 1]
    assert not any(part.has_restart or part.crash for part in small)
    # Both rows are of one user, whose count is one in each batch and two in both together.
    items = list_items(actual.case)
    assert len({dict(items[part.items[0]].record)["user"] for part in small}) == 1  # type: ignore[call-overload,arg-type]
    assert not actual.failure.fails_in_one_batch


@pytest.mark.timeout(600)
def test_a_run_that_starts_again_owes_no_row_that_still_waits_for_a_source(
    spark: SparkSession, tmp_path: Path
) -> None:
    paid = [{"id": "z", "at": "2026-01-01 13:00:00", "n": 1}]
    item = case(tmp_path, "unbought", {"paid": paid, "clicks": clicked([("a", "ann", 1), ("b", "ann", 59)])})
    ends = {}

    with create_case_folder() as folder, SplitReplay(spark, folder) as replay:
        trying = SplitTrial(Baseline(spark, item, list_items(item)), replay.play)
        for restart in (False, True):
            trial_result = trying.play((SplitBatch((0,)), SplitBatch((1, 2), has_restart=restart)))
            assert not trial_result.differs, trial_result.gaps
            ends[restart] = [row["id"] for step in trial_result.outcome.results for row in step.rows[""]]

    # Spark has forgotten how far `paid` was, and waits for its next row.
    assert ends == {False: ["a"], True: []}
