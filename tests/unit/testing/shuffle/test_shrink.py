from random import Random

from hypothesis import given
from hypothesis import strategies as some

from millstream.testing.shuffle.shrink import shrink
from millstream.testing.shuffle.splits import Item, Split, SplitBatch, draw_split

ROWS = tuple(Item(at, "a", str(at % 2), {}) for at in range(12))
seeds = some.integers(0, 2**32)


def rows(split: Split) -> list[int]:
    return [item for part in split for item in part.items]


def batch(split: Split, row: int) -> int | None:
    return next((at for at, part in enumerate(split) if row in part.items), None)


@given(seeds)
def test_two_rows_that_must_not_meet_in_one_batch_are_left_alone(seed: int) -> None:
    def fails(split: Split) -> bool:
        first, second = batch(split, 2), batch(split, 7)
        return None not in (first, second) and first != second

    split = draw_split(ROWS, Random(seed))
    if not fails(split):
        return

    shrunk = shrink(split, fails)

    assert sorted(rows(shrunk.split)) == [2, 7]
    assert len(shrunk.split) == 2
    assert not any(part.has_restart or part.crash for part in shrunk.split)
    assert shrunk.is_complete


@given(seeds)
def test_what_is_found_fails_too(seed: int) -> None:
    def fails(split: Split) -> bool:
        return len(rows(split)) >= 5 and any(part.crash for part in split)

    split = draw_split(ROWS, Random(seed))
    if fails(split):
        assert fails(shrink(split, fails).split)


def test_a_crash_that_is_needed_stays_and_a_restart_that_is_not_goes() -> None:
    split = (
        SplitBatch((0, 1)),
        SplitBatch((2,), has_restart=True),
        SplitBatch((3, 4), crash="after_sink"),
        SplitBatch((5,)),
    )

    shrunk = shrink(split, lambda split_batches: any(part.crash for part in split_batches))

    assert len(shrunk.split) == 2
    assert [part.crash for part in shrunk.split].count("after_sink") == 1
    assert not any(part.has_restart for part in shrunk.split)
    assert len(rows(shrunk.split)) == 2


def test_two_batches_are_left_where_one_would_fail_too() -> None:
    shrunk = shrink(tuple(SplitBatch((at,)) for at in range(6)), lambda _: True)

    assert [len(part.items) for part in shrunk.split] == [1, 1]


def test_three_batches_stay_where_three_are_needed() -> None:
    shrunk = shrink(
        tuple(SplitBatch((at,)) for at in range(6)), lambda split_batches: len(split_batches) >= 3
    )

    assert len(shrunk.split) == len(rows(shrunk.split)) == 3


def test_no_split_is_tried_twice() -> None:
    split_batches: list[Split] = []

    def fails(split: Split) -> bool:
        split_batches.append(split)
        return len(rows(split)) >= 7

    shrink(tuple(SplitBatch((at,)) for at in range(12)), fails)

    assert len(split_batches) == len(set(split_batches))


def test_it_ends_when_the_tries_run_out_with_the_best_so_far() -> None:
    def fails(split: Split) -> bool:
        return {1, 10} <= set(rows(split))

    shrunk = shrink(tuple(SplitBatch((at,)) for at in range(12)), fails, tries=4)

    assert shrunk.tries == 4
    assert not shrunk.is_complete
    assert fails(shrunk.split)


def test_rows_are_put_in_the_order_of_the_case_where_that_fails_too() -> None:
    shrunk = shrink(
        (SplitBatch((3, 1, 2)), SplitBatch((0,))), lambda split_batches: len(rows(split_batches)) == 4
    )

    assert shrunk.split == (SplitBatch((1, 2, 3)), SplitBatch((0,)))
