"""Which rejected rows are collected as they pass, and which columns a dead letter needs."""

from __future__ import annotations

from pathlib import Path

import pytest

from millstream.frames.dead_letter_columns import FILE, collects_dead_letters, raw_columns
from millstream.pipeline.spec_file import load_text

SPEC = """
name: shop
sources:
  orders: {kafka: {bootstrap_servers: "localhost:1", subscribe: orders}, schema: {id: string}, expect: EXPECT}
  folder: {json: {path: in}, schema: {id: string}, expect: EXPECT}
  lines: {socket: {host: localhost, port: 1}, expect: {is_short: {that: length(value) < 9, otherwise: dead_letter}}}
views:
  checked: {sql: SELECT id FROM orders, expect: EXPECT}
queries: {checked: {to: {console: {}}}}
"""


@pytest.mark.parametrize(
    ("name", "that", "is_collected"),
    [
        ("orders", "id > 0", False),
        ("folder", "id > 0", False),
        ("orders", "rand() > 0.5", True),
        ("lines", "id > 0", True),
        ("checked", "id > 0", True),
    ],
)
def test_rows_that_cannot_be_read_again_are_collected_as_they_pass(
    name: str, that: str, is_collected: bool
) -> None:
    expect = f'{{holds: {{that: "{that}", otherwise: dead_letter}}}}'
    loaded = load_text("pipeline.yml", SPEC.replace("EXPECT", expect), Path("/shop"), {})
    assert loaded.pipeline is not None, loaded.findings

    assert collects_dead_letters(loaded.pipeline, name) is is_collected


def test_a_dead_letter_of_a_file_needs_the_path_and_one_of_a_topic_the_position() -> None:
    loaded = load_text("pipeline.yml", SPEC.replace("EXPECT", "{}"), Path("/shop"), {})
    assert loaded.pipeline is not None, loaded.findings
    sources = loaded.pipeline.sources

    assert raw_columns(sources["folder"], ["id", "offset", FILE]) == [FILE]
    assert raw_columns(sources["orders"], ["id", "offset", "value"]) == ["offset", "value"]
