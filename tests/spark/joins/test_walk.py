"""Joins of every kind, watermark and mode: what Spark takes gives the batch answer, what it refuses has a cure.

Of 720 combinations those are judged, and started where they are refused, in which any two values of two dimensions
meet; of these, those are checked or run in which each value occurs. `MILLSTREAM_SWEEP=all` takes one dimension more,
`MILLSTREAM_WALK=all` looks at all of them.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from pyspark.errors import PySparkException

import sweep
from millstream.checking.check import check
from millstream.checking.compat import error_parser
from millstream.checking.compat.start_check import find_refusal
from millstream.diagnostics.finding import Severity
from millstream.engine.batch.batch_run import compute_batch_results
from millstream.frames.build_views import build_frames
from millstream.pipeline.spec_file import load_text
from millstream.spec.output_mode import OutputMode
from small_batches import SMALL_BATCHES, changed_settings
from spark.joins.walk import CLOSING, KINDS, Join, covering, spec, walk, write_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from millstream.checking.compat.start_check import Refusal
    from millstream.diagnostics.finding import Finding

Rows = list[tuple[Any, ...]]
PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "stream-joins.md"
WHOLE = os.environ.get("MILLSTREAM_WALK") == "all"
# So many dimensions whose values meet.
MEETING = 2 + sweep.WHOLE


@dataclass
class Walk:
    """All combinations over the same rows in one session."""

    spark: SparkSession
    folder: Path

    @cached_property
    def frames(self) -> dict[str, DataFrame]:
        """Each join as a stream, by its view."""
        pipeline = load_text("pipeline.yml", spec(self.joins), self.folder, {}).pipeline
        assert pipeline is not None
        return build_frames(self.spark, pipeline)

    @cached_property
    def joins(self) -> list[Join]:
        """Those that are looked at, and of each kind and mode the one that Spark takes most likely."""
        bound = [
            join
            for join in walk()
            if (join.condition, join.watermark, join.result) == ("window", join.streams, "rows")
        ]
        return walk() if WHOLE else [*dict.fromkeys([*bound, *covering(walk(), MEETING)])]

    @cached_property
    def list_refusals(self) -> dict[Join, Refusal | None]:
        """What we say of each."""
        return {join: find_refusal(self.frames[join.view], OutputMode(join.mode)) for join in self.joins}

    def starting(self, join: Join) -> str:
        """What Spark says when it is started; empty when it starts."""
        writer = self.frames[join.view].writeStream.format("noop").outputMode(join.mode)
        try:
            writer.option("checkpointLocation", str(self.folder / "starts" / join.query)).start().stop()
        except PySparkException as error:
            return error_parser.full_message(error)
        return ""

    def errors(self, joins: Sequence[Join]) -> dict[str, list[Finding]]:
        """The errors that a whole check finds, by query."""
        findings: dict[str, list[Finding]] = {join.query: [] for join in joins}
        if not joins:
            return findings
        for finding in check(load_text("pipeline.yml", spec(joins), self.folder, {}), self.spark).findings:
            if finding.severity is Severity.ERROR:
                findings[str(finding.query)].append(finding)
        return findings

    def input_rows(self, join: Join) -> Rows:
        """What a run gives in all its batches, less the closing rows."""
        writer = self.frames[join.view].writeStream.format("memory").queryName("given").outputMode(join.mode)
        # A join may be run by several tests; each begins anew.
        writer = writer.option("checkpointLocation", str(self.folder / "runs" / uuid4().hex))
        writer.trigger(availableNow=True).start().awaitTermination()
        rows = [tuple(row) for row in self.spark.table("given").collect()]
        # A count comes out again each time it grows.
        rows = list({row[0]: row for row in rows}.values()) if join.result == "counts" else rows
        return drop_times(rows)

    def expected_rows(self, joins: Iterable[Join]) -> dict[str, Rows]:
        """The batch answer of each view."""
        pipeline = load_text("pipeline.yml", spec(joins), self.folder, {}).pipeline
        assert pipeline is not None
        frames = compute_batch_results(self.spark, pipeline)
        views = {join.view: frames[join.query] for join in joins}
        return {view: drop_times([tuple(row) for row in frame.collect()]) for view, frame in views.items()}


def drop_times(rows: Rows) -> Rows:
    """Without the closing rows, in an order."""
    return sorted(
        (row for row in rows if next(key for key in row[::2] if key is not None) < CLOSING), key=str
    )


@pytest.fixture(scope="module")
def walked(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Walk]:
    folder = tmp_path_factory.mktemp("joins")
    write_rows(folder)
    with changed_settings(spark, SMALL_BATCHES):
        yield Walk(spark, folder)


def some(joins: Sequence[Join]) -> Sequence[Join]:
    """All of them, or few in which values meet in one dimension less."""
    return joins if WHOLE else covering(joins, MEETING - 1)


@pytest.mark.timeout(900)
def test_what_is_refused_is_what_spark_does_not_start_in_its_words(walked: Walk) -> None:
    texts = {join: refusal.text for join, refusal in walked.list_refusals.items() if refusal is not None}

    started = {join: walked.starting(join) for join in texts}

    assert started == texts


def test_the_page_tells_what_spark_takes(walked: Walk) -> None:
    duration: dict[str, list[str]] = {}
    for kind, words in KINDS.items():
        for streams in ("left", "right", "both"):
            modes = [
                mode
                for mode in OutputMode
                if any(
                    refusal is None
                    for join, refusal in walked.list_refusals.items()
                    if (join.kind, join.streams, join.mode, join.result) == (kind, streams, mode, "rows")
                )
            ]
            duration.setdefault(words, []).append(", ".join(modes) or "-")

    rows = re.findall(
        r"^\| `([A-Z ]+JOIN|JOIN)` \| (.*?) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE
    )
    assert {words: cells.split(" | ") for words, cells in rows} == duration


@pytest.mark.timeout(1800)
def test_what_is_refused_is_a_finding_with_a_cure(walked: Walk) -> None:
    joins = [*some([join for join, refusal in walked.list_refusals.items() if refusal is not None])]

    findings = walked.errors(joins)

    assert [join.query for join in joins if not findings[join.query]] == []
    assert [
        (finding.query, finding.code)
        for several in findings.values()
        for finding in several
        if not finding.fix
    ] == []


@pytest.mark.timeout(1800)
def test_what_is_taken_gives_the_batch_answer(walked: Walk) -> None:
    joins = [*some([join for join, refusal in walked.list_refusals.items() if refusal is None])]
    expected_rows = walked.expected_rows(joins)

    input_rows = {join: walked.input_rows(join) for join in joins}
    error = {
        join.query: (rows, expected_rows[join.view])
        for join, rows in input_rows.items()
        if rows != expected_rows[join.view]
    }

    # What Spark takes and never ends, such as a full join with a watermark on one side, is an error of the check.
    findings = walked.errors([join for join in joins if join.query in error])
    assert {query: error[query] for query, actual in findings.items() if not actual} == {}
    assert sum(len(rows) for rows in input_rows.values()) > len(joins)
