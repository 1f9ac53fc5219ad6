"""An edit changes only its value, and nothing else on the line."""

from __future__ import annotations

from pathlib import Path

from millstream.analysis.rule_runner import run_spec_rules
from millstream.analysis.text_edits import replace_value
from millstream.diagnostics.finding import Edit
from millstream.pipeline.spec_file import LoadedSpec, load_text

SPEC = """name: shop
sources:
  orders:
    kafka: {bootstrap_servers: "localhost:9092", subscribe: orders, fail_on_data_loss: false}  # soon
    schema: {a: int}
queries:
  orders:
    trigger: once
    to: {delta: lake/orders}
"""
TRIGGER = ("queries", "orders", "trigger")


def loaded(spec: str = SPEC, overrides: tuple[str, ...] = ()) -> LoadedSpec:
    text = load_text("pipeline.yml", spec, Path("nowhere"), {}, overrides)
    assert text.pipeline is not None, text.findings
    return text


def edits(spec: LoadedSpec, code: str) -> list[Edit | None]:
    return [finding.edit for finding in run_spec_rules(spec) if finding.code == code]


def test_a_value_inside_a_line_is_replaced_and_the_rest_stays() -> None:
    edit = replace_value(loaded().places, "true", "sources", "orders", "source", "fail_on_data_loss")

    assert edit == Edit(
        "pipeline.yml",
        3,
        (
            '    kafka: {bootstrap_servers: "localhost:9092", subscribe: orders, fail_on_data_loss: true}'
            "  # soon",
        ),
        1,
        is_safe=False,
    )


def test_a_value_that_is_not_written_in_the_file_has_no_edit() -> None:
    assert replace_value(loaded().places, "1 second", "defaults", "trigger") is None


def test_a_value_of_several_lines_has_no_edit() -> None:
    assert replace_value(loaded().places, "{}", "queries", "orders") is None


def test_a_value_on_a_line_of_its_own_keeps_its_indentation() -> None:
    spec = loaded(SPEC.replace("trigger: once", "trigger:\n      once: true"))

    edit = replace_value(spec.places, "available_now", *TRIGGER)

    assert edit is not None
    assert edit.insert == ("      available_now",)


def test_once_is_replaced_without_asking_where_no_source_limits_its_batches() -> None:
    assert [edit.is_safe for edit in edits(loaded(), "MS303") if edit] == [True]


def test_once_is_not_replaced_without_asking_where_a_source_limits_its_batches() -> None:
    limited = SPEC.replace("subscribe: orders", "subscribe: orders, max_offsets_per_trigger: 10")

    assert [edit.is_safe for edit in edits(loaded(limited), "MS303") if edit] == [False]


def test_what_stops_a_pipeline_that_goes_on_today_is_not_done_without_asking() -> None:
    assert [edit.is_safe for edit in edits(loaded(), "MS504") if edit] == [False]
