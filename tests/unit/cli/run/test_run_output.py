"""What a person reads of a run: sentences for a log, rows for a table, cells for the live table."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from unicodedata import category

import click
import pytest

from millstream.cli.run.run_output import JsonLines, PlainLines, format_event
from millstream.cli.table import format_table, format_value, to_strict_json
from millstream.engine.events.event_bus import Event

if TYPE_CHECKING:
    from pathlib import Path

BATCH = {
    "batch": 7,
    "rows_in": 120,
    "rows_out": 5,
    "late_rows": 2,
    "duration_ms": {"triggerExecution": 1530},
}

KEPT = {"query": "q", "sink": "console", "guarantee": "at-least-once", "weakest": None}


@pytest.mark.parametrize(
    ("event", "said"),
    [
        (
            Event(
                "run_started", "", {"pipeline": "shop", "queries": ["q"], "log": "l", "guarantees": [KEPT]}
            ),
            "shop: running q; Spark's log is l\n"
            "  query  sink     guarantee      weakest link\n"
            "  q      console  at-least-once  -",
        ),
        (Event("query_started", "funnel", {"batch": None}), "funnel: started from a fresh checkpoint"),
        (Event("query_started", "funnel", {"batch": 4}), "funnel: started from batch 5"),
        (Event("batch_committed", "funnel", BATCH), "funnel: batch 7, 120 rows in, 5 out, 2 late, 1.5 s"),
        (
            Event("batch_committed", "funnel", {**BATCH, "input_rate": 1234.5}),
            "funnel: batch 7, 120 rows in (1,234.5 a second), 5 out, 2 late, 1.5 s",
        ),
        (
            Event(
                "batch_committed", "funnel", {**BATCH, "expectations": {"orders": {"paid": 3, "known": 0}}}
            ),
            "funnel: batch 7, 120 rows in, 5 out, 2 late, 3 broke orders.paid, 1.5 s",
        ),
        (
            Event("batch_committed", "funnel", {**BATCH, "rows_in": 1}),
            "funnel: batch 7, 1 row in, 5 out, 2 late, 1.5 s",
        ),
        (
            Event("dead_letter", "funnel", {"batch": 7, "records": 1}),
            "funnel: 1 record of batch 7 stored as dead letters",
        ),
        (
            Event("dead_letter", "funnel", {"batch": 7, "records": 1200}),
            "funnel: 1,200 records of batch 7 stored as dead letters",
        ),
        (
            Event("retry", "funnel", {"reason": "Postgres is away", "wait_seconds": 2.0}),
            "funnel: Postgres is away; again in 2.0 s",
        ),
        (
            Event("query_failed", "funnel", {"reason": "a row has no key", "fix": "leave it out"}),
            "funnel: gave up: a row has no key\n  fix: leave it out",
        ),
        (
            Event(
                "query_failed",
                "funnel",
                {"reason": "a cast failed", "fix": "mend it", "batch": 7, "reads": list("abcdefg")},
            ),
            "funnel: gave up in batch 7: a cast failed\n  reads a\n  reads b\n  reads c\n  reads d\n  reads e"
            "\n  and 2 more\n  fix: mend it",
        ),
        (Event("run_stopped", "", {"exit_code": 1}), "stopped, because a query gave up"),
    ],
)
def test_an_event_is_a_sentence(event: Event, said: str) -> None:
    assert format_event(event) == said


def test_a_batch_without_rows_is_not_worth_a_line() -> None:
    empty = {**BATCH, "rows_in": 0, "rows_out": 0}

    assert format_event(Event("batch_committed", "funnel", empty)) is None


def test_numbers_stand_to_the_right_and_nothing_trails() -> None:
    drawn = format_table(["name", "n"], [["a", 5], ["longer", 12345]])

    assert drawn == "name        n\na           5\nlonger  12345\n"


def test_a_table_without_rows_is_its_head() -> None:
    assert format_table(["a", "b"], []) == "a  b\n"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "NULL"),
        (datetime(2026, 1, 1, 12, tzinfo=UTC), "2026-01-01 12:00:00"),
        (1 / 3, "0.333333"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("two\nlines", "two\\nlines"),
    ],
)
def test_a_value_is_shown_so_that_no_terminal_obeys_it(value: object, shown: str) -> None:
    assert format_value(value) == shown


def test_what_a_pipeline_prints_does_not_come_between_the_json_lines(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with JsonLines() as lines:
        click.echo("a table of the console sink")
        lines.show(Event("query_started", "funnel", {"batch": None}))
        sys.stdout.write("a function of the user\n")
    click.echo("afterwards")

    captured = capsys.readouterr()
    first, last = captured.out.splitlines()
    assert json.loads(first)["event"] == "query_started"
    assert last == "afterwards"
    assert captured.err.splitlines() == ["a table of the console sink", "a function of the user"]


# A producer can choose the text of a record, and an error quotes it.
HOSTILE = "the value '\x1b]52;c;cm0gLXJm\x07\x1b[2J\n2026-03-01T12:00:00.000Z funnel: stopped' is no number"
FAILURES = (
    Event("retry", "funnel", {"reason": HOSTILE, "wait_seconds": 2.0}, "2026-03-01T12:00:00.000Z"),
    Event("query_failed", "funnel", {"reason": HOSTILE, "fix": "cast it"}, "2026-03-01T12:00:00.000Z"),
)


def test_an_error_neither_controls_the_terminal_nor_forges_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = PlainLines(tmp_path / "run.log")
    for event in FAILURES:
        lines.show(event)

    printed = capsys.readouterr().err
    assert [char for char in printed if category(char) == "Cc" and char != "\n"] == []
    assert [line for line in printed.splitlines() if "funnel: stopped" in line] == [
        "  2026-03-01T12:00:00.000Z funnel: stopped' is no number; again in 2.0 s",
        "  2026-03-01T12:00:00.000Z funnel: stopped' is no number",
    ]


def test_values_that_json_lacks_are_text() -> None:
    row = {
        "n": float("nan"),
        "inner": [{"x": float("-inf")}, (float("inf"), 0.5)],
        "key": b"\x00\xff",
        "i": {1: 2},
    }

    assert json.loads(json.dumps(to_strict_json(row), allow_nan=False)) == {
        "n": "NaN",
        "inner": [{"x": "-Infinity"}, ["Infinity", 0.5]],
        "key": "AP8=",
        "i": {"1": 2},
    }
