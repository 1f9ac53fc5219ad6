"""A sink held against the batch answer."""

from __future__ import annotations

from collections import Counter

from millstream.engine.batch.sink_comparison import (
    Verdict,
    compare_by_key,
    compare_by_row,
    compare_by_version,
)


def verdict(promised: str = "exactly-once") -> Verdict:
    return Verdict("orders", "delta:orders", "append", promised)


def rows(*texts: str) -> Counter[tuple[str | None, ...]]:
    """Rows of a key and a value: `a1`."""
    return Counter((text[0], text[1:]) for text in texts)


def figures(found: Verdict) -> tuple[int, int, int]:
    return found.missing, found.doubled, found.different


def test_the_same_rows_are_fine() -> None:
    actual = verdict()

    compare_by_row(actual, rows("a1", "b2"), rows("a1", "b2"), rows("a1", "b2"))

    assert (figures(actual), actual.is_equal) == ((0, 0, 0), True)


def test_missing_doubled_and_different_rows_are_told_with_their_keys() -> None:
    actual = verdict()

    compare_by_row(actual, rows("a1", "a1", "c3"), rows("a1", "b2"), rows("a1", "b2"))

    assert (figures(actual), actual.keys) == (
        (1, 1, 1),
        {"missing": ["b, 2"], "doubled": ["a, 1"], "different": ["c, 3"]},
    )


def test_rows_of_what_closed_the_windows_may_be_there_and_need_not() -> None:
    for there in (rows("a1"), rows("a1", "z9")):
        actual = verdict()
        compare_by_row(actual, there, rows("a1"), rows("a1", "z9"))
        assert actual.is_equal


def test_a_key_that_is_there_twice_is_doubled() -> None:
    actual = verdict()

    compare_by_key(actual, [0], rows("a1", "a1"), rows("a1"), rows("a1"))

    assert figures(actual) == (0, 1, 0)


def test_of_several_rows_with_one_key_any_may_have_won() -> None:
    actual = verdict()

    compare_by_key(actual, [0], rows("a2"), rows("a1", "a2"), rows("a1", "a2"))

    assert actual.is_equal


def test_an_older_value_of_a_key_is_different() -> None:
    actual = verdict()

    compare_by_key(actual, [0], rows("a1"), rows("a2"), rows("a2"))

    assert figures(actual) == (0, 0, 1)


def test_a_key_that_is_not_there_is_missing() -> None:
    actual = verdict()

    compare_by_key(actual, [0], rows(), rows("a1"), rows("a1"))

    assert figures(actual) == (1, 0, 0)


def test_a_sink_that_promises_at_least_once_may_hold_rows_twice() -> None:
    actual = verdict("at-least-once")

    compare_by_row(actual, rows("a1", "a1"), rows("a1"), rows("a1"))

    assert (actual.doubled, actual.is_equal) == (1, True)


def test_a_key_that_a_row_may_have_removed_need_not_be_there() -> None:
    for there in (rows("a1"), rows()):
        actual = verdict()
        compare_by_key(actual, [0], there, rows("a1"), rows("a1"), rows("a2"))
        assert actual.is_equal


def test_a_key_that_was_only_removed_must_not_be_there() -> None:
    actual = verdict()

    compare_by_key(actual, [0], rows("a2"), rows(), rows(), rows("a2"))

    assert figures(actual) == (0, 0, 1)


def versions(*texts: str) -> Counter[tuple[str | None, ...]]:
    """Rows of a key, a value and the batch that wrote them: `a1x`."""
    return Counter(tuple(text) for text in texts)


def test_of_the_versions_of_a_row_the_last_one_must_be_there() -> None:
    actual = verdict()

    compare_by_version(actual, versions("a1x", "a2y", "b1x"), rows("a2", "b2"))

    assert (figures(actual), actual.keys) == ((1, 0, 0), {"missing": ["b, 2"]})


def test_a_version_that_a_batch_wrote_twice_is_doubled() -> None:
    actual = verdict()

    compare_by_version(actual, versions("a1x", "a1x", "a1y"), rows("a1"))

    assert figures(actual) == (0, 1, 0)
