from random import Random

from hypothesis import given
from hypothesis import strategies as some

from millstream.testing.shuffle.splits import Item, SplitBatch, draw_split
from millstream.testing.shuffle.watermark_model import (
    LateRow,
    TimedRow,
    WatermarkPolicy,
    candidate_late_sets,
    compute_timeline,
)

SECOND = 1_000_000
CLOCK = WatermarkPolicy({"a": 10 * SECOND})


def at(seconds: float, source: str = "a", key: object = None) -> TimedRow:
    return TimedRow(source, int(seconds * SECOND), key)  # type: ignore[arg-type]


def test_the_watermark_is_the_newest_time_less_the_delay() -> None:
    timeline = compute_timeline(
        (SplitBatch((0, 1)), SplitBatch((2,))), {0: at(100), 1: at(60), 2: at(95)}, CLOCK
    )

    assert timeline.before == (0, 90 * SECOND)
    assert timeline.after == (90 * SECOND, 90 * SECOND)


def test_rows_of_one_batch_are_not_late_to_each_other() -> None:
    assert compute_timeline((SplitBatch((0, 1)),), {0: at(100), 1: at(5)}, CLOCK).late == ()


def test_a_late_row_is_told_with_the_row_that_moved_the_watermark() -> None:
    timeline = compute_timeline(
        (SplitBatch((0, 1)), SplitBatch((2,))), {0: at(50), 1: at(100), 2: at(90)}, CLOCK
    )

    assert timeline.late == (LateRow(2, 1, 90 * SECOND, 90 * SECOND, 1),)


def test_a_row_just_past_the_watermark_is_in_time() -> None:
    rows = {0: at(100), 1: TimedRow("a", 90 * SECOND + 1)}

    assert compute_timeline((SplitBatch((0,)), SplitBatch((1,))), rows, CLOCK).late == ()


def test_event_times_count_in_whole_milliseconds() -> None:
    timeline = compute_timeline((SplitBatch((0,)),), {0: TimedRow("a", 100 * SECOND + 1999)}, CLOCK)

    assert timeline.after == (90 * SECOND + 1000,)


def test_the_slowest_source_holds_the_watermark() -> None:
    two = WatermarkPolicy({"a": 10 * SECOND, "b": 20 * SECOND})
    rows = {0: at(100), 1: at(50, "b"), 2: at(200, "b")}

    timeline = compute_timeline((SplitBatch((0,)), SplitBatch((1,)), SplitBatch((2,))), rows, two)

    assert timeline.after == (0, 30 * SECOND, 90 * SECOND)


def test_a_run_that_starts_again_keeps_the_watermark_and_forgets_how_far_each_source_was() -> None:
    two = WatermarkPolicy({"a": 10 * SECOND, "b": 10 * SECOND})
    rows = {0: at(100), 1: at(50, "b"), 2: at(90, "b"), 3: at(101)}

    for split_batch in (SplitBatch((2,), has_restart=True), SplitBatch((2,), crash="after_sink")):
        timeline = compute_timeline((SplitBatch((0, 1)), split_batch, SplitBatch((3,))), rows, two)

        assert timeline.after == (40 * SECOND, 40 * SECOND, 80 * SECOND)


def test_the_fastest_source_moves_it_where_that_is_set() -> None:
    two = WatermarkPolicy({"a": 10 * SECOND, "b": 20 * SECOND}, follows_slowest=False)

    assert (
        compute_timeline((SplitBatch((0,)), SplitBatch((1,))), {0: at(100), 1: at(50, "b")}, two).after
        == (90 * SECOND,) * 2
    )


def test_a_row_without_time_is_never_late() -> None:
    assert (
        compute_timeline(
            (SplitBatch((0,)), SplitBatch((1,))), {0: at(100), 1: TimedRow("a", None)}, CLOCK
        ).late
        == ()
    )


def test_rows_of_a_source_without_a_watermark_are_never_late() -> None:
    assert (
        compute_timeline((SplitBatch((0,)), SplitBatch((1,))), {0: at(100), 1: at(5, "b")}, CLOCK).late == ()
    )


def test_a_repeated_key_is_dropped_while_it_is_remembered() -> None:
    timeline = compute_timeline(
        (SplitBatch((0,)), SplitBatch((1,))), {0: at(100, key="k"), 1: at(105, key="k")}, CLOCK
    )

    assert timeline.repeated == ((1, 0),)
    assert timeline.missed_duplicates == ()


def test_a_repeated_key_of_the_same_batch_is_dropped() -> None:
    assert compute_timeline(
        (SplitBatch((0, 1)),), {0: at(100, key="k"), 1: at(999, key="k")}, CLOCK
    ).repeated == ((1, 0),)


def test_a_key_comes_again_once_the_watermark_has_passed_its_time_and_the_delay() -> None:
    rows = {0: at(100, key="k"), 1: at(120, key="other"), 2: at(121, key="k")}

    timeline = compute_timeline((SplitBatch((0,)), SplitBatch((1,)), SplitBatch((2,))), rows, CLOCK)

    assert timeline.missed_duplicates == ((2, 0),)


@given(some.lists(some.integers(0, 300), max_size=12), some.integers(0, 2**32))
def test_the_watermark_never_goes_back_and_ends_at_the_same_time(times: list[int], seed: int) -> None:
    rows = {number: at(time) for number, time in enumerate(times)}
    split = draw_split([Item(number, "a", str(number), {}) for number in rows], Random(seed))

    timeline = compute_timeline(split, rows, CLOCK)

    assert list(timeline.after) == sorted(timeline.after)
    if rows:
        assert timeline.after[-1] == max(0, max(times) - 10) * SECOND


def test_the_likeliest_rows_are_tried_first() -> None:
    late = [LateRow(number, 1, 0, 1, None) for number in (4, 5)]

    actual = candidate_late_sets(late, [5], 3)

    assert actual == [frozenset({5}), frozenset({4, 5}), frozenset({4})]
