"""The table of guarantees."""

from __future__ import annotations

from millstream.diagnostics.guarantee_table import format_guarantee_table

SURE = {"query": "funnel", "sink": "delta lake/funnel", "guarantee": "exactly-once", "weakest": None}
WEAK = {
    "query": "shown",
    "sink": "console",
    "guarantee": "at-least-once",
    "weakest": {"text": "console: a repeated batch is printed again", "file": "pipeline.yml", "line": 9},
}


def test_a_line_a_sink_with_the_weakest_link_and_its_place() -> None:
    assert format_guarantee_table([SURE, WEAK]) == [
        "query   sink               guarantee      weakest link",
        "funnel  delta lake/funnel  exactly-once   -",
        "shown   console            at-least-once  console: a repeated batch is printed again (pipeline.yml:9)",
    ]


def test_a_place_that_the_sentence_has_already_is_not_told_twice() -> None:
    result = {"text": "rand() (pipeline.yml:9) gives another value", "file": "pipeline.yml", "line": 9}

    assert format_guarantee_table([WEAK | {"weakest": result}])[1].endswith(
        "rand() (pipeline.yml:9) gives another value"
    )


def test_a_long_sink_moves_its_own_row_alone() -> None:
    lines = format_guarantee_table([SURE, WEAK | {"sink": "parquet " + "x" * 60}])

    assert lines[0].index("guarantee") == lines[1].index("exactly-once") < lines[2].index("at-least-once")


def test_what_a_user_wrote_stays_on_its_line() -> None:
    assert "\x1b" not in format_guarantee_table([SURE | {"sink": "delta \x1b[2J"}])[1]
