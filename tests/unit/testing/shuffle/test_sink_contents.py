from typing import Any

from hypothesis import given
from hypothesis import strategies as some

from millstream.spec.output_mode import OutputMode
from millstream.testing.shuffle.sink_contents import (
    ExpectedContents,
    OutputReading,
    combine_batches,
    compare_contents,
)

APPEND = OutputReading("memory all", OutputMode.APPEND)
UPDATE = OutputReading("delta counts", OutputMode.UPDATE, key=("k",))
COMPLETE = OutputReading("memory all", OutputMode.COMPLETE)


def row(k: str, n: Any) -> dict[str, Any]:
    return {"k": k, "n": n}


def expected_contents(
    *most: dict[str, Any], least: tuple[dict[str, Any], ...] | None = None
) -> ExpectedContents:
    return ExpectedContents(most, most if least is None else least)


def test_in_append_mode_all_rows_stay() -> None:
    assert combine_batches([[row("a", 1)], [], [row("a", 1)]], APPEND) == (row("a", 1), row("a", 1))


def test_in_update_mode_the_last_row_of_a_key_stays() -> None:
    assert combine_batches([[row("a", 1), row("b", 1)], [row("a", 2)]], UPDATE) == (row("a", 2), row("b", 1))


def test_in_complete_mode_the_last_batch_stays() -> None:
    assert combine_batches([[row("a", 1), row("b", 1)], [row("a", 2)]], COMPLETE) == (row("a", 2),)


def test_nothing_is_held_without_a_batch() -> None:
    assert combine_batches([], COMPLETE) == ()


@given(some.permutations([row("a", 1), row("a", 1), row("b", None)]))
def test_order_does_not_count(rows: list[dict[str, Any]]) -> None:
    assert not compare_contents(
        rows, [expected_contents(row("a", 1), row("a", 1), row("b", None))], APPEND, 0
    )


def test_a_doubled_row_is_told() -> None:
    difference = compare_contents([row("a", 1), row("a", 1)], [expected_contents(row("a", 1))], APPEND, 0)

    assert difference.surplus == (row("a", 1),)
    assert not difference.missing


def test_a_missing_row_is_told() -> None:
    assert compare_contents([], [expected_contents(row("a", 1))], APPEND, 0).missing == (row("a", 1),)


def test_a_row_that_waits_may_be_there_and_need_not() -> None:
    waits = expected_contents(row("a", 1), row("b", 1), least=(row("a", 1),))

    assert not compare_contents([row("a", 1)], [waits], APPEND, 0)
    assert not compare_contents([row("a", 1), row("b", 1)], [waits], APPEND, 0)
    assert compare_contents([row("b", 1)], [waits], APPEND, 0).missing == (row("a", 1),)


def test_a_key_with_another_value_is_told_with_both() -> None:
    difference = compare_contents([row("a", 1)], [expected_contents(row("a", 2))], UPDATE, 0)

    assert difference.changed == ((row("a", 2), row("a", 1)),)
    assert difference.missing == difference.surplus == ()


def test_a_row_may_be_as_in_any_answer() -> None:
    both = [expected_contents(row("a", 2), row("b", 1)), expected_contents(row("a", 1), row("b", 1))]

    assert not compare_contents([row("a", 1), row("b", 1)], both, UPDATE, 0)
    assert not compare_contents([row("a", 2), row("b", 1)], both, UPDATE, 0)
    assert compare_contents([row("a", 3), row("b", 1)], both, UPDATE, 0).changed


def test_a_key_that_two_rows_share_loses_one_in_update_mode() -> None:
    shared = expected_contents(row("a", 1), row("a", 2))

    difference = compare_contents([row("a", 2)], [shared], UPDATE, 0)

    assert difference.missing == (row("a", 1),)
    assert difference.is_shared


def test_a_key_that_two_rows_share_may_hold_either_in_append_mode() -> None:
    upserts = OutputReading("postgres t", OutputMode.APPEND, key=("k",))

    assert not compare_contents([row("a", 2)], [expected_contents(row("a", 1), row("a", 2))], upserts, 0)


def test_of_rows_alike_any_one_is_right_and_only_one() -> None:
    alike = OutputReading("memory all", OutputMode.APPEND, alike=("k",))
    either = [expected_contents(row("a", 1)), expected_contents(row("a", 2))]

    assert not compare_contents([row("a", 1)], either, alike, 0)
    assert not compare_contents([row("a", 2)], either, alike, 0)
    assert compare_contents([row("a", 1), row("a", 2)], either, alike, 0).surplus
    assert compare_contents([], either, alike, 0).missing == (row("a", 1),)


def test_floats_may_differ_by_the_tolerance() -> None:
    for reading in (APPEND, UPDATE):
        assert not compare_contents([row("a", 1.0)], [expected_contents(row("a", 1.0005))], reading, 1e-3)
        assert compare_contents([row("a", 1.0)], [expected_contents(row("a", 1.005))], reading, 1e-3)


def test_nan_is_the_same_as_nan() -> None:
    assert not compare_contents(
        [row("a", float("nan"))], [expected_contents(row("a", float("nan")))], APPEND, 0
    )
