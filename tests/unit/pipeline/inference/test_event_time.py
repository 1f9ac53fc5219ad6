from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from millstream.pipeline.inference.event_time import TimeUnit, find_event_time, format_seconds

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def iso(seconds: float) -> str:
    return (NOON + timedelta(seconds=seconds)).isoformat()


def find(*records: dict[str, Any], partitions: list[int] | None = None) -> Any:
    return find_event_time(records, partitions or [0] * len(records))


def test_disorder_is_the_longest_time_behind_a_newer_record() -> None:
    found = find(*({"ts": iso(second)} for second in (0, 60, 20, 59, 61)))

    assert (found.disorder, found.late, found.delay) == (timedelta(seconds=40), 2, "2 minutes")


def test_order_counts_within_a_partition_only() -> None:
    found = find(*({"ts": iso(second)} for second in (0, 600, 1, 601)), partitions=[0, 1, 0, 1])

    assert (found.disorder, found.late, found.delay) == (timedelta(0), 0, "10 seconds")


@pytest.mark.parametrize(
    ("value", "unit"),
    [
        (1_767_268_800, TimeUnit.SECONDS),
        (1_767_268_800_000, TimeUnit.MILLIS),
        (1_767_268_800_000_000, TimeUnit.MICROS),
        ("2026-01-01T12:00:00Z", TimeUnit.TIMESTAMP),
        ("2026-01-01 12:00:00.123456789", TimeUnit.TIMESTAMP),
        (NOON, TimeUnit.TIMESTAMP),
    ],
)
def test_the_unit_is_that_in_which_the_time_is_of_this_century(value: Any, unit: TimeUnit) -> None:
    found = find({"sent_at": value})

    assert (found.unit, found.first.replace(microsecond=0)) == (unit, NOON)


@pytest.mark.parametrize(
    "record",
    [
        {"amount": 1_767_268_800},
        {"ts": 12},
        {"ts": True},
        {"ts": "soon"},
        {"day": "2026-01-01"},
        {"ts": None},
        {"ts": {"seconds": 1_767_268_800}},
    ],
    ids=str,
)
def test_what_is_no_time_is_not_taken_for_one(record: dict[str, Any]) -> None:
    assert find(record) is None


def test_the_event_time_is_known_by_its_name_before_its_order() -> None:
    shuffled = [5, 1, 3]
    records = [
        {"expires_at": iso(number), "loaded_at": iso(number), "event_time": iso(second)}
        for number, second in enumerate(shuffled)
    ]

    assert find(*records).name == "event_time"
    assert (
        find(*({key: row[key] for key in ("expires_at", "loaded_at")} for row in records)).name == "loaded_at"
    )


def test_few_records_may_lack_the_time() -> None:
    with_time = [{"ts": iso(number)} for number in range(99)]

    assert find(*with_time, {"ts": None}).missing == 1
    assert find(*with_time[:9], {"ts": None}) is None


def test_a_text_without_a_zone_is_known() -> None:
    assert find({"ts": "2026-01-01 12:00:00"}).has_zone is False
    assert find({"ts": "2026-01-01T12:00:00-08:00"}).has_zone is True


@pytest.mark.parametrize(
    ("seconds", "text"), [(1, "1 second"), (90, "90 seconds"), (3600, "1 hour"), (172800, "2 days")]
)
def test_a_delay_is_written_in_its_largest_whole_unit(seconds: int, text: str) -> None:
    assert format_seconds(seconds) == text


def test_a_disorder_of_days_has_a_delay_of_days() -> None:
    assert find({"ts": iso(0)}, {"ts": iso(-86400 * 1.2)}).delay == "3 days"
