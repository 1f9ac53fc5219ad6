"""What of a step differs from what was expected, and how it is told."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from itertools import permutations
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from millstream.diagnostics.finding import Span
from millstream.pipeline.load.loader import load_text
from millstream.testing.model import Case, Difference, Expected, Restart, Row, Step, StepResult
from millstream.testing.runner.compare import find_differences
from millstream.testing.runner.row_matching import match_rows

SPEC = "name: a\nsources: {s: {rate: {}}}\nviews: {v: SELECT * FROM s}\nqueries: {q: {from: v, to: {console: {}}}}\n"
PLACE = Span.point("tests/a.yml")


def case() -> Case:
    pipeline = load_text("pipeline.yml", SPEC, Path(), {}).pipeline
    assert pipeline is not None
    return Case("t", pipeline, "q", (), Path("tests/a.yml"), PLACE)


CASE = case()


def judged(expected: Expected, **got: Any) -> tuple[Difference, ...]:
    step = Step((), expected, PLACE)
    step_result = replace(StepResult(step, (0,), None, {"": ()}), **got)
    return find_differences(expected, step_result, CASE)


def rows(wanted: list[Row], got: list[Row]) -> Difference | None:
    differences = judged(Expected(rows={"": tuple(wanted)}), rows={"": tuple(got)})
    return differences[0] if differences else None


def table(difference: Difference | None) -> list[tuple[str, str]]:
    assert difference is not None
    return list(zip(difference.expected, difference.got, strict=True))


def test_rows_fit_in_any_order_by_the_columns_that_are_named() -> None:
    assert rows([{"a": 1}, {"b": 2}], [{"a": 9, "b": 2}, {"a": 1, "b": 5}]) is None


def test_each_row_that_came_is_used_once() -> None:
    # The row that names less must leave the only one that fits the other.
    assert rows([{"a": 1}, {"a": 1, "b": 2}], [{"a": 1, "b": 2}, {"a": 1, "b": 3}]) is None
    assert rows([{"a": 1}, {"a": 1}], [{"a": 1}]) is not None


def test_nothing_is_wanted_and_something_came() -> None:
    difference = rows([], [{"a": 1, "b": None}])

    assert difference is not None
    assert difference.what == "rows of query 'q'"
    assert table(difference) == [("", "a  b"), ("(no row)", "1  NULL")]


def test_rows_of_a_later_version_are_named_after_its_view() -> None:
    later = load_text(
        "pipeline.yml", SPEC.replace("v:", "w:").replace("from: v", "from: w"), Path(), {}
    ).pipeline
    steps = (Step((Restart(later),), Expected(), PLACE), Step((), Expected(rows={"w": ({"a": 1},)}), PLACE))
    result = StepResult(steps[1], (0,), None, {"w": ()})

    differences = find_differences(steps[1].expected, result, replace(CASE, steps=steps))

    assert [difference.what for difference in differences] == ["rows of view 'w'"]


def test_rows_are_shown_beside_those_nearest_to_them() -> None:
    difference = rows(
        [{"at": "2026-01-01 12:00:00", "n": 1}, {"at": "2026-01-01 12:10:00", "n": 5}],
        [
            {"at": datetime(2026, 1, 1, 12, 10, tzinfo=UTC), "n": 6, "more": 1},
            {"at": datetime(2026, 1, 1, 12, tzinfo=UTC), "n": 1, "more": 1},
        ],
    )

    assert table(difference) == [
        ("at                   n", "at                   n"),
        ("2026-01-01 12:10:00  *5", "2026-01-01 12:10:00  *6"),
        ("2026-01-01 12:00:00  1", "2026-01-01 12:00:00  1"),
    ]


def test_a_row_too_many_stands_alone() -> None:
    assert table(rows([{"a": 1}], [{"a": 1}, {"a": 2}])) == [("a", "a"), ("(no row)", "2"), ("1", "1")]


def test_a_number_and_its_text_are_told_apart() -> None:
    assert table(rows([{"a": 1}], [{"a": "1"}])) == [("a", "a"), ("*1", '*"1" (str)')]


def test_a_column_that_no_row_has_is_named() -> None:
    difference = rows([{"click_cout": 1}], [{"click_count": 1}])

    assert difference is not None
    assert difference.what == "rows of query 'q' (no column 'click_cout'; did you mean 'click_count'?)"


def test_rows_too_wide_to_stand_side_by_side_are_shown_a_cell_a_line() -> None:
    difference = rows([{"a": "x" * 30, "b": "y" * 30}], [{"a": "x" * 30, "b": "z" * 30}])

    assert table(difference) == [
        (f"a  {'x' * 30}", "x" * 30),
        (f"b  *{'y' * 30}", f"*{'z' * 30}"),
    ]


def test_long_values_are_shown_around_the_place_where_they_part() -> None:
    ((_, _), (item, other)) = table(rows([{"a": "x" * 100 + "1"}], [{"a": "x" * 100 + "2"}]))

    assert (item[-1], other[-1]) == ("1", "2")
    assert len(item) < 50


def test_many_rows_that_fit_are_counted() -> None:
    difference = rows([{"a": n} for n in range(20)] + [{"a": 99}], [{"a": n} for n in range(20)])

    assert difference is not None
    assert difference.expected[-1] == "… and 16 more that match"


def test_the_watermark_dropped_rows_and_state_are_compared() -> None:
    at = datetime(2026, 1, 1, 12, tzinfo=UTC)
    expected = Expected(watermark=at, dropped=1, state=3)

    differences = judged(
        expected, watermark=at.replace(minute=5), dropped=0, state={"stateStoreSave": 1, "dedupe": 1}
    )

    assert [(difference.what, difference.expected, difference.got) for difference in differences] == [
        ("watermark", ("2026-01-01 12:00:00",), ("2026-01-01 12:05:00",)),
        ("rows dropped as too late", ("1",), ("0",)),
        ("rows in state", ("3",), ("2", "  stateStoreSave: 1", "  dedupe: 1")),
    ]


def test_state_is_compared_by_operator() -> None:
    state = {"stateStoreSave": 1, "dedupe": 2}

    assert judged(Expected(state={"dedupe": 2}), state=state) == ()
    (difference,) = judged(Expected(state={"dedup": 2}), state=state)
    assert difference.got == ("dedup: no such operator", "stateStoreSave: 1", "dedupe: 2")


def test_dead_letters_are_compared_as_a_number_and_as_rows() -> None:
    letter = {"source": "s", "reason": "cannot be read: Malformed records", "value": b"{broken", "offset": 7}

    assert judged(Expected(letters=1), letters=(letter,)) == ()
    expected = ({"reason": "Malformed", "value": "{broken", "offset": 7},)
    assert judged(Expected(letters=expected), letters=(letter,)) == ()
    assert judged(Expected(letters=({"reason": "too big"},)), letters=(letter,)) != ()
    (difference,) = judged(Expected(letters=0), letters=(letter,))
    assert difference.what == "dead letters"


def test_an_error_that_nobody_expected_is_told_alone() -> None:
    (difference,) = judged(Expected(dropped=3), error="cannot divide\nby zero")

    assert (difference.what, difference.got) == ("error", ("cannot divide", "by zero"))


def test_an_expected_error_must_come_and_say_so() -> None:
    expected = Expected(error="divide")

    assert judged(expected, error="cannot divide") == ()
    assert judged(expected, error="gone")[0].got == ("gone",)
    assert judged(expected)[0].got == ("none",)


def test_rows_of_views_sources_and_sinks_are_called_so() -> None:
    expected = Expected(rows={"v": ({"a": 1},), "s": ({"a": 1},), "console": ({"a": 1},)})

    assert [difference.what for difference in judged(expected)] == [
        "rows of view 'v'",
        "rows of source 's'",
        "rows of sink 'console'",
    ]


TABLES = st.integers(1, 5).flatmap(
    lambda width: st.lists(
        st.lists(st.integers(0, 3), min_size=width, max_size=width), min_size=1, max_size=5
    )
)


@given(TABLES)
def test_no_other_pairing_fits_more_rows_or_differs_less(costs: list[list[int]]) -> None:
    numbers, got = range(len(costs)), range(len(costs[0]))

    paired = match_rows(numbers, got, lambda item, other: costs[item][other])

    short, long = sorted((len(numbers), len(got)))
    every = [
        [costs[a][b] if len(numbers) == short else costs[b][a] for a, b in enumerate(chosen)]
        for chosen in permutations(range(long), short)
    ]
    assert len(paired.same) == max(sum(cost == 0 for cost in chosen) for chosen in every)
    assert len(paired.same) + len(paired.differing) == short
    assert {item for item, _ in (*paired.same, *paired.differing)} | set(paired.missing) == set(numbers)
    assert {other for _, other in (*paired.same, *paired.differing)} | set(paired.surplus) == set(got)
    left = (
        [item for item, _ in paired.differing] + list(paired.missing),
        [other for _, other in paired.differing] + list(paired.surplus),
    )
    turned = len(left[0]) > len(left[1])
    few, many = (left[1], left[0]) if turned else left
    least = min(
        sum(costs[b][a] if turned else costs[a][b] for a, b in zip(few, chosen, strict=True))
        for chosen in permutations(many, len(few))
    )
    assert sum(costs[a][b] for a, b in paired.differing) == least
