"""What a check with Spark finds in views with state, and where."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from millstream.checking.check import check
from millstream.pipeline.spec_file import load_text

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

CODE = """import pandas as pd


class Status:
    def handleInputRows(self, key, rows, timers):
        yield pd.DataFrame({"user": [key[0]], "status": ["seen"]})


class Nothing:
    pass


def status(key, frames, state):
    yield pd.DataFrame({"user": [key[0]], "status": ["seen"]})
"""
SPEC = """name: users
sources:
  actions:
    kafka: {bootstrap_servers: "localhost:9092", subscribe: actions, max_offsets_per_trigger: 100000}
    schema: {user: string, at: timestamp}
    watermark: {event_time: at, delay_threshold: 1 minute}
views:
  status:
    transform_with_state: "status:Status"
    from: actions
    group_by: [user]
    schema: {user: string, status: string}
    state: {last: {value: {status: string}}}
    time_mode: event_time
    output_mode: update
queries:
  status:
    output_mode: update
    to: {delta: {path: lake/status, merge_on: [user]}}
"""
OLDER = (
    ('transform_with_state: "status:Status"', 'apply_in_pandas_with_state: "status:status"'),
    ("state: {last: {value: {status: string}}}", "state: {status: string}"),
    ("time_mode: event_time", "timeout: event_time"),
)


@pytest.mark.parametrize(
    ("changes", "code", "line", "words"),
    [
        ((), "", 0, ""),
        (OLDER, "", 0, ""),
        (
            (("{user: string, status: string}", "{user: string, status: strin}"),),
            "MS112",
            12,
            "is not a type of Spark SQL",
        ),
        ((("{status: string}}}", "{status: nope}}}"),), "MS112", 13, "is not a type of Spark SQL"),
        ((("[user]", "[usr]"),), "MS112", 11, "no column 'usr'"),
        ((("status:Status", "status:Nothing"),), "MS112", 9, "handleInputRows"),
        ((("status:Status", "status:status"),), "MS112", 9, "handleInputRows"),
        ((("output_mode: update\n    to", "output_mode: complete\n    to"),), "MS311", 18, "no streaming"),
        ((*OLDER, ("output_mode: update\nq", "output_mode: append\nq")), "MS311", 18, ""),
        ((("    watermark: {event_time: at, delay_threshold: 1 minute}\n", ""),), "MS217", 8, "watermark"),
    ],
)
def test_each_mistake_is_found_at_its_place(
    changes: tuple[tuple[str, str], ...],
    code: str,
    line: int,
    words: str,
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "status.py").write_text(CODE)
    text = SPEC
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)

    findings = check(load_text("pipeline.yml", text, tmp_path, {}), spark).findings

    assert [item.code for item in findings] == ([code] if code else []), findings
    for finding in findings:
        assert finding.span is not None
        assert (finding.span.file, finding.span.line) == ("pipeline.yml", line)
        assert words in f"{finding.message} {finding.fix}"
