"""The watermark line that MS201 proposes names a column that the source has, or no line is proposed."""

from __future__ import annotations

from pathlib import Path

import pytest

from millstream.analysis.query.plan_model import Aggregate, Column, Join, PlannedQuery, Read
from millstream.analysis.rule_context import Facts
from millstream.analysis.rules import ms201_missing_watermark
from millstream.checking.check import check
from millstream.pipeline.load.loader import load_text
from millstream.spec.output_mode import OutputMode
from millstream.spec.trigger import Trigger

SPEC = """name: shop
sources:
  ticks:
    {source}
views:
  counts: |
    SELECT window({time}, '1 minute') AS minute, count(*) AS n
    FROM ticks
    GROUP BY 1
queries:
  counts: {{output_mode: update, to: {{console: {{}}}}}}
"""
KAFKA = 'kafka: {bootstrap_servers: "localhost:9092", subscribe: clicks, max_offsets_per_trigger: 1000}'


def proposed(source: str, time: str) -> list[str]:
    loaded = load_text("pipeline.yml", SPEC.format(source=source, time=time), Path(), {})
    findings = [finding for finding in check(loaded).findings if finding.code == "MS201"]
    assert len(findings) == 1
    edit = findings[0].edit
    return [line.strip() for line in edit.insert] if edit else []


@pytest.mark.parametrize(
    ("source", "time", "column"),
    [
        ("rate: {rows_per_second: 1}", "timestamp", "timestamp"),
        (KAFKA, "timestamp", "timestamp"),
        (f"{KAFKA}\n    schema: {{id: string, at: timestamp}}", "at", "at"),
        (f"{KAFKA}\n    schema: {{sent: timestamp, seen: timestamp}}", "seen", "seen"),
        (f"{KAFKA}\n    schema: {{sent: timestamp, seen: timestamp}}", "ticks.sent", "sent"),
    ],
)
def test_the_line_names_the_column_of_the_window(source: str, time: str, column: str) -> None:
    assert proposed(source, time) == [f"watermark: {{event_time: {column}, delay_threshold: 10 minutes}}"]


def test_without_known_columns_the_window_says_the_column() -> None:
    assert proposed("delta: lake/ticks", "happened_at") == [
        "watermark: {event_time: happened_at, delay_threshold: 10 minutes}"
    ]


JOIN = """name: shop
sources:
  orders:
    kafka: {bootstrap_servers: "localhost:9092", subscribe: orders}
    schema: {id: string, ts: timestamp}
  payments:
    kafka: {bootstrap_servers: "localhost:9092", subscribe: payments}
    schema: {id: string, paid_at: timestamp}
views:
  hours: {python: "transforms:hours"}
queries:
  hours: {output_mode: update, to: {console: {}}}
"""


def test_a_join_needs_the_watermark_of_the_source_whose_time_it_groups_by() -> None:
    loaded = load_text("pipeline.yml", JOIN, Path(), {})
    assert loaded.pipeline is not None, loaded.findings
    times = {"orders": "ts", "payments": "paid_at"}
    sides = tuple(
        Read(
            0, "StreamingRelation", "", is_streaming=True, source=name,
            columns=(Column(time, "timestamp", origins=frozenset({(name, time)}), is_copied=True),),
        )
        for name, time in times.items()
    )  # fmt: skip
    join = Join(0, "Join", "", sides, sides[0].columns + sides[1].columns, is_streaming=True)
    window = Column("window", "struct<start:timestamp,end:timestamp>", origins=sides[1].columns[0].origins)
    root = Aggregate(0, "Aggregate", "", (join,), (window,), is_streaming=True, keys=(window,))
    query = PlannedQuery("hours", root, OutputMode.UPDATE, Trigger())

    (finding,) = ms201_missing_watermark.judge(query, Facts(loaded.pipeline, loaded.places))

    assert finding.message == "query 'hours' aggregates source 'payments', which has no watermark"
    assert finding.edit is not None
    assert finding.edit.line == 6
    assert "event_time: paid_at" in finding.edit.insert[0]
