"""Kafka from its oldest record without a limit: when it is reported, and the edit that adds a limit."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from millstream.analysis.rule_context import Facts
from millstream.analysis.rules import ms514_whole_topic
from millstream.analysis.spec_settings import read_settings
from millstream.diagnostics.text_patch import apply_edits
from millstream.pipeline.spec_file import load_text

if TYPE_CHECKING:
    from millstream.diagnostics.finding import Finding

BLOCK = """kafka:
      bootstrap_servers: "localhost:9092"
      subscribe: orders
"""
BRACES = 'kafka: {bootstrap_servers: "localhost:9092", subscribe: orders}\n'


def spec(source: str = BRACES, trigger: str = "10 seconds", sink: str = "delta: lake/orders") -> str:
    return f"""name: shop
sources:
  orders:
    {source}    schema: {{id: string}}
    on_malformed: drop
queries:
  orders: {{trigger: {trigger}, to: {{{sink}}}}}
"""


def judged(text: str) -> list[Finding]:
    loaded = load_text("pipeline.yml", text, Path(), {}, [])
    assert loaded.pipeline is not None, loaded.findings
    return list(ms514_whole_topic.check_settings(read_settings(Facts(loaded.pipeline, loaded.places))))


@pytest.mark.parametrize("source", [BLOCK, BRACES])
def test_its_edit_adds_a_limit_with_which_nothing_is_told(source: str) -> None:
    text = spec(source)
    (finding,) = judged(text)
    assert finding.edit is not None

    changed, edits = apply_edits(text, [finding.edit])

    assert len(edits) == 1
    assert "max_offsets_per_trigger: 100000" in changed
    assert judged(changed) == []


# Without a limit of the source's Spark makes one batch of what there is under available_now too.
@pytest.mark.parametrize("trigger", ["default", "10 seconds", "available_now"])
def test_it_is_told_under_each_trigger_whose_batches_a_limit_bounds(trigger: str) -> None:
    (finding,) = judged(spec(trigger=trigger))

    assert "the first batch contains all records of topic 'orders'" in finding.message


@pytest.mark.parametrize("trigger", ["once", "{continuous: 1 second}", "{real_time: 5 minutes}"])
def test_it_is_not_told_where_no_limit_would_hold(trigger: str) -> None:
    assert judged(spec(trigger=trigger)) == []


def test_it_is_not_told_of_what_is_only_looked_at() -> None:
    assert judged(spec(sink="console: {}")) == []


@pytest.mark.parametrize("start", ["starting_offsets: latest", 'starting_timestamp: "2026-01-01T00:00:00Z"'])
def test_it_is_not_told_where_the_start_is_chosen(start: str) -> None:
    assert judged(spec(BLOCK + f"      {start}\n")) == []
