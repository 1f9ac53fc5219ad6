"""Expectations rewritten in their file: to what came, and every other byte as it was."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.testing.authoring.update_expectations import UpdatedFile, update_expectations
from millstream.testing.authoring.yaml_edit import format_flow
from millstream.testing.files.loader import load_text
from millstream.testing.model import Case, Row, StepResult
from millstream.testing.runner.compare import find_differences

HEAD = """\
# A test file.
pipeline:
  {name: shop, sources: {s: {rate: {}}}, views: {ticks: "SELECT * FROM s"}, queries: {ticks: {to: {console: }}}}
tests:
  it ticks:   # a remark
    steps:
"""


def cases(text: str) -> tuple[Case, ...]:
    suite = load_text("t.yml", text, Path("t.yml"), lambda _: {}, filling=True)
    assert suite.findings == ()
    return suite.cases


def judged(case: Case, *got: dict[str, Any]) -> list[StepResult]:
    step_results = []
    for step, item in zip(case.steps, got, strict=True):
        step_result = replace(StepResult(step, (0,), None, {"": ()}), **item)
        step_results.append(
            replace(step_result, differences=find_differences(step.expected, step_result, case))
        )
    return step_results


def update(steps: str, *got: dict[str, Any]) -> UpdatedFile:
    """The steps rewritten, after it is seen that the test passes then."""
    text = HEAD + steps
    (case,) = cases(text)
    updated = update_expectations("t.yml", text, [(case, judged(case, *got))])
    assert updated.text.startswith(HEAD)
    if not updated.not_updated:
        assert not any(step_result.differences for step_result in judged(cases(updated.text)[0], *got))
    return replace(updated, text=updated.text.removeprefix(HEAD))


def actual_rows(*rows: Row) -> dict[str, Any]:
    return {"rows": {"": rows}}


STEPS = [
    # (what stands there, what came, what stands there then)
    (
        "      - expect: [{value: 1, timestamp: null}]  # as it is\n",
        [{"value": 2, "timestamp": None}],
        "      - expect: [{value: 2, timestamp: null}]  # as it is\n",
    ),
    (
        "      - expect:\n          # the first\n          - {value: 1}   # one\n          - value: 2\n",
        [{"value": 1}, {"value": 3}],
        "      - expect:\n          # the first\n          - {value: 1}   # one\n          - value: 3\n",
    ),
    (
        "      - expect: [{value: 1}, {value: 2}, {value: 3}]\n",
        [{"value": 2}],
        "      - expect: [{value: 2}]\n",
    ),
    (
        "      - expect: [{value: 1}]\n",
        [{"value": 1}, {"value": 2}],
        "      - expect: [{value: 1}, {value: 2}]\n",
    ),
    (
        "      - expect:\n          - {value: 1}  # gone\n          - {value: 2}  # here\n        # after\n"
        "        expect_dropped: 0\n",
        [{"value": 2}, {"value": 2}, {"value": 7}],
        "      - expect:\n          - {value: 2}  # gone\n          - {value: 2}  # here\n"
        "          - {value: 7}\n        # after\n"
        "        expect_dropped: 0\n",
    ),
    (
        "      - expect:\n          - {value: 1}  # gone\n          - {value: 2}\n          - {value: 3}\n",
        [{"value": 2}],
        "      - expect:\n          - {value: 2}\n",
    ),
    ("      - expect: []  # none\n", [{"value": 1}], "      - expect: [{value: 1}]  # none\n"),
    (
        "      - expect:\n",
        [{"value": 1, "timestamp": None}],
        "      - expect: [{value: 1, timestamp: null}]\n",
    ),
    ("      - {expect: [{value: 1}], expect_dropped: 0}\n", [], "      - {expect: [], expect_dropped: 0}\n"),
    (
        "      - expect:  # why\n          - {value: 1}\n        expect_dropped: 0\n",
        [],
        "      - expect: []  # why\n        expect_dropped: 0\n",
    ),
    (
        "      - expect:\n          - text: |\n              hello\n            n: 1\n      - restart\n",
        [{"text": "bye\n", "n": 1}],
        '      - expect:\n          - text: "bye\\n"\n            n: 1\n      - restart\n',
    ),
    (
        "      - expect:\n          - text: >\n              hello\n          - {text: b}\n      - restart\n",
        [{"text": "b"}],
        "      - expect:\n          - {text: b}\n      - restart\n",
    ),
    (
        "      - expect:\n        - value: 1\n          timestamp: null\n      - restart\n",
        [{"value": 1, "timestamp": datetime(2026, 1, 1, tzinfo=UTC)}],
        '      - expect:\n        - value: 1\n          timestamp: "2026-01-01 00:00:00"\n      - restart\n',
    ),
]


@pytest.mark.parametrize(("before", "rows", "after"), STEPS)
def test_rows_are_rewritten_where_they_stand(before: str, rows: list[Row], after: str) -> None:
    got = [actual_rows(*rows)] + [actual_rows()] * before.count("- restart")

    updated = update(before, *got)

    assert (updated.text, updated.not_updated) == (after, [])


@pytest.mark.parametrize(("before", "rows", "_"), STEPS)
def test_line_ends_of_windows_stay(before: str, rows: list[Row], _: str) -> None:
    text = (HEAD + before).replace("\n", "\r\n")
    (case,) = cases(text)
    step_results = judged(case, actual_rows(*rows), *[actual_rows()] * before.count("- restart"))
    many_rows = judged(
        case, *[actual_rows(*({"value": n, "name": "x" * 20} for n in range(5)))] * len(step_results)
    )

    for results in (step_results, many_rows):
        updated = update_expectations("t.yml", text, [(case, results)])

        assert updated.steps > 0
        assert "\n" not in updated.text.replace("\r\n", "")
        assert "\r" not in updated.text.replace("\r\n", "")


def test_many_rows_are_written_a_line_each() -> None:
    updated = update(
        "      - expect: []\n      - restart\n",
        actual_rows(*({"value": n, "name": "x" * 20} for n in range(5))),
        actual_rows(),
    )

    lines = "".join(f"          - {{value: {n}, name: {'x' * 20}}}\n" for n in range(5))
    assert updated.text == f"      - expect:\n{lines}      - restart\n"


def test_single_figures_are_rewritten() -> None:
    updated = update(
        '      - expect_watermark: "2026-01-01 12:00:00"  # here\n'
        "        expect_dropped: 1\n        expect_state: {dedupe: 2}\n"
        "        expect_dead_letters: 0\n",
        {
            "watermark": datetime(2026, 1, 1, 12, 5, tzinfo=UTC),
            "dropped": 0,
            "state": {"dedupe": 3},
            "letters": ({"source": "ticks", "reason": "no", "value": b"x"},),
        },
    )

    assert updated.text == (
        '      - expect_watermark: "2026-01-01 12:05:00"  # here\n'
        "        expect_dropped: 0\n        expect_state: {dedupe: 3}\n"
        "        expect_dead_letters: 1\n"
    )
    assert updated.steps == 1


def test_what_an_alias_refers_to_is_left_as_it_is() -> None:
    steps = (
        "      - expect: &rows [{value: 1}, {value: 2}]\n"
        "        expect_dropped: &many 1\n"
        "      - expect: *rows\n"
        "      - expect_dropped: *many\n"
        "      - expect: [&row {value: 1}]\n"
        "      - expect: [*row, {value: 2}]\n"
    )
    both = ({"value": 1}, {"value": 2})

    updated = update(
        steps,
        {**actual_rows(*both), "dropped": 3},
        actual_rows({"value": 1}, {"value": 3}),
        {"dropped": 2},
        actual_rows(),
        actual_rows({"value": 1}),
    )

    assert updated.text == steps.replace("*many", "2").replace("[*row, {value: 2}]", "[*row]")
    assert updated.not_updated == [
        "'it ticks', step 1: it contains a YAML anchor",
        "'it ticks', step 2: it is a YAML alias",
        "'it ticks', step 4: it contains a YAML anchor",
    ]


def test_a_list_with_an_anchor_gets_rows_and_values() -> None:
    updated = update(
        "      - expect: &rows [{value: 1}]\n      - expect:\n          - &row {value: 1, n: 1}\n          # end\n",
        actual_rows({"value": 2}, {"value": 3}),
        actual_rows({"value": 1, "n": 2}, {"value": 5, "n": 3}),
    )

    assert updated.text == (
        "      - expect: &rows [{value: 2}, {value: 3}]\n"
        "      - expect:\n          - &row {value: 1, n: 2}\n          - {value: 5, n: 3}\n          # end\n"
    )


def test_an_error_and_the_steps_after_it_are_left_to_a_person() -> None:
    steps = (
        "      - expect: [{value: 1}]\n"
        "      - expect: [{value: 2}]\n        expect_dropped: 2\n"
        "      - expect: [{value: 3}]\n"
    )

    updated = update(steps, actual_rows({"value": 7}), {"error": "cannot divide"}, actual_rows())

    assert updated.text == steps.replace("value: 1", "value: 7")
    assert updated.not_updated == ["'it ticks', step 2: review the error by hand"]


def test_a_test_of_a_table_is_left_as_it_is() -> None:
    text = (
        HEAD.replace("    steps:", "    table: [{n: 1}]\n    steps:") + '      - expect: [{value: "${n}"}]\n'
    )
    (case,) = cases(text)

    updated = update_expectations("t.yml", text, [(case, judged(case, actual_rows({"value": 2})))])

    assert (updated.text, len(updated.not_updated)) == (text, 1)


ROWS = st.lists(
    st.fixed_dictionaries({"value": st.integers(0, 3), "name": st.sampled_from("ab")}), max_size=5
)


def block(rows: list[Row]) -> str:
    return "".join(f"          - {format_flow(row)}  # kept\n" for row in rows)


@given(ROWS, ROWS, st.booleans())
def test_whatever_came_the_test_passes_afterwards(wanted: list[Row], got: list[Row], flat: bool) -> None:
    steps = (
        f"      - expect: {format_flow(wanted)}\n"
        if flat or not wanted
        else f"      - expect:\n{block(wanted)}"
    )

    assert update(steps, actual_rows(*got)).not_updated == []


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(alphabet=st.characters(exclude_categories=("Cs",))),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.text(alphabet="ab $:", min_size=1, max_size=4), inner, max_size=3)
        ),
        max_leaves=8,
    )
)
def test_a_value_is_read_back_as_it_was_written(value: object) -> None:
    from millstream.pipeline.load.document import parse_yaml
    from millstream.testing.files.parametrize import fill_placeholders

    document = parse_yaml("t.yml", f"a: {format_flow(value)}\n")

    assert document.findings == []
    assert fill_placeholders(document.data["a"], {}) == value
