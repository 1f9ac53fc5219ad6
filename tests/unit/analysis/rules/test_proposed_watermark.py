"""The watermark line that MS201 proposes names a column that the source has, or no line is proposed."""

from __future__ import annotations

from pathlib import Path

import pytest

from millstream.checking.check import check
from millstream.pipeline.load.loader import load_text

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
