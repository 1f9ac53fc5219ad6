"""Tests of all examples are replayed in other batches, and each is there under the words that the tool has."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from millstream.testing.files.discovery import find_test_files, select_cases
from millstream.testing.files.loader import load
from shuffles import COLUMNS, TESTS, rows

if TYPE_CHECKING:
    from millstream.testing.model import Case

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.fixture(scope="module")
def cases() -> dict[str, list[Case]]:
    """By example its tests."""
    return {
        name: [case for file in find_test_files([EXAMPLES / name]) for case in load(file, lambda _: {}).cases]
        for name in TESTS
    }


def test_every_example_is_replayed() -> None:
    assert sorted(TESTS) == sorted(path.name for path in EXAMPLES.iterdir() if path.is_dir())


@pytest.mark.parametrize(("name", "words"), [(name, words) for name in TESTS for words in TESTS[name]])
def test_words_find_a_test(cases: dict[str, list[Case]], name: str, words: str) -> None:
    assert select_cases(cases[name], words)


def played_case(name: str, seconds: float, splits: int, dropped: list[Any]) -> dict[str, Any]:
    """What `test --shuffle --json` tells of a test, as far as the table has it."""
    return {"name": name, "seconds": seconds, "shuffle": {"splits": splits, "dropped": dropped}}


def test_each_test_is_a_row() -> None:
    messages = rows(
        "dedup", [played_case("a retry is dropped", 72.6, 40, []), played_case("so is a copy", 1.2, 50, [])]
    )

    assert messages == [
        "| `dedup` | a retry is dropped | 40 | 73 |  |",
        "| `dedup` | so is a copy | 50 | 1 |  |",
    ]
    assert {item.count("|") for item in messages} == {len(COLUMNS) + 1}


def test_a_test_of_several_values_is_one_row() -> None:
    tests = [
        played_case("late [x=1]", 20, 10, []),
        played_case("late [x=2]", 16.6, 9, [{"source": "readings"}]),
    ]

    assert rows("activity", tests) == ["| `activity` | late | 10 and 9 | 37 | 1 |"]
