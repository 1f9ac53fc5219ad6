"""Which dead letters a purge takes, and which of several stored ones are the same record."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from millstream.connectors.api.dead_letters import DeadLetter, is_selected, read_unique
from millstream.connectors.delta.dead_letter_table import _newest_since

if TYPE_CHECKING:
    from collections.abc import Sequence

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
RECORD = DeadLetter("copy", "orders", "orders", 0, 7, None, NOON, None, b"{", "is not JSON", 3, NOON)
ROW = replace(RECORD, topic=None, partition=None, offset=None, file="in/1.json")


class Store:
    """Dead letters, as they were stored."""

    def __init__(self, letters: Sequence[DeadLetter]) -> None:
        self.letters = letters

    def all(self) -> Sequence[DeadLetter]:
        return self.letters


def unique(*letters: DeadLetter) -> list[DeadLetter]:
    return read_unique(Store(letters))  # type: ignore[arg-type]


def test_a_record_that_two_queries_stored_is_read_once() -> None:
    assert unique(replace(RECORD, query="sums"), RECORD) == [RECORD]


def test_equal_rows_of_a_file_are_read_as_often_as_one_query_stored_them() -> None:
    assert unique(ROW, replace(ROW, query="sums"), ROW, replace(ROW, query="sums")) == [ROW, ROW]


def test_records_are_read_by_topic_and_offset_and_rows_of_files_before_them() -> None:
    later = replace(RECORD, topic="returns", offset=1)

    assert unique(later, RECORD, ROW, replace(RECORD, offset=4)) == [
        ROW,
        replace(RECORD, offset=4),
        RECORD,
        later,
    ]


@pytest.mark.parametrize(
    ("before", "source", "is_taken"),
    [
        (None, None, True),
        (NOON, None, False),
        (NOON + MINUTE, None, True),
        (NOON + MINUTE, "orders", True),
        (NOON + MINUTE, "returns", False),
    ],
)
def test_a_purge_takes_what_is_older_and_of_its_source(
    before: datetime | None, source: str | None, is_taken: bool
) -> None:
    assert is_selected(RECORD, before, source) is is_taken


def test_the_newest_rows_are_looked_for_in_the_newest_files_alone() -> None:
    files = [(NOON, NOON + MINUTE, 10), (NOON + 2 * MINUTE, NOON + 3 * MINUTE, 10)]

    assert _newest_since(files, 5) == (NOON + 2 * MINUTE, False)
    assert _newest_since(files, 15) == (None, True)
    assert _newest_since([*files, (None, None, 1)], 5) == (None, True)
