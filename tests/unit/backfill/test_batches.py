"""The batches that `--batches` names."""

from __future__ import annotations

import pytest

from millstream.backfill.batches import parse_batches
from millstream.diagnostics.failure import InvalidInput


@pytest.mark.parametrize(
    ("text", "batches"), [("5", (5,)), ("5-7", (5, 6, 7)), ("9, 5-6", (5, 6, 9)), ("0-0", (0,))]
)
def test_batches_are_named_one_by_one_or_as_a_range(text: str, batches: tuple[int, ...]) -> None:
    assert parse_batches(text) == batches


@pytest.mark.parametrize("text", ["", "7-5", "a", "5-", "-5", "5--7"])
def test_other_words_name_no_batches(text: str) -> None:
    with pytest.raises(InvalidInput, match="is not a list of batches"):
        parse_batches(text)
