"""How a range is written, and what is none."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from millstream.backfill.options import parse_time, require_ordered_range
from millstream.diagnostics.failure import InvalidInput

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    "text", ["2026-01-31 12:00", "2026-01-31T12:00:00Z", "2026-01-31T14:00:00+02:00", " 2026-01-31T12 "]
)
def test_a_moment_may_have_a_zone_and_is_utc_without(text: str) -> None:
    assert parse_time(text) == NOON


def test_a_date_is_its_first_moment() -> None:
    assert parse_time("2026-01-31") == datetime(2026, 1, 31, tzinfo=UTC)


@pytest.mark.parametrize("text", ["yesterday", "31.01.2026", ""])
def test_what_is_no_moment_is_refused_with_examples(text: str) -> None:
    with pytest.raises(InvalidInput) as error:
        parse_time(text)

    assert "2026-01-31T12:00:00+02:00" in error.value.fix


def test_a_range_without_a_moment_is_refused() -> None:
    with pytest.raises(InvalidInput, match="which is not after its start"):
        require_ordered_range(NOON, NOON)
