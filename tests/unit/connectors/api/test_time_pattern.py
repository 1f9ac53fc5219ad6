"""Times in the patterns of Spark's options."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from millstream.connectors.api.values.time_pattern import format_time, parse_zone

TIME = datetime(2026, 1, 31, 15, 4, 5, 678900, tzinfo=UTC)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("dd/MM/yyyy HH:mm:ss", "31/01/2026 15:04:05"),
        ("yyyy-MM-dd'T'HH:mm:ss[.SSS]XXX", "2026-01-31T15:04:05.678Z"),
        ("d.M.yy h 'o''clock' a", "31.1.26 3 o'clock PM"),
        ("EEE, dd MMM yyyy HH:mm:ss.SSSSSSSSS Z", "Sat, 31 Jan 2026 15:04:05.678900000 +0000"),
        ("yyyy-DDD ZZZZZ zzz xxxxx", "2026-031 Z UTC +00:00"),
    ],
)
def test_a_time_is_written_in_a_pattern(pattern: str, text: str) -> None:
    assert format_time(TIME, pattern) == text


def test_a_pattern_with_another_field_is_refused() -> None:
    with pytest.raises(ValueError, match="times cannot be written with 'Q' in 'yyyy-Q'"):
        format_time(TIME, "yyyy-Q")


@pytest.mark.parametrize(
    ("pattern", "zone", "text"),
    [
        ("HH:mm x xx xxx ZZZ VV", "Europe/Berlin", "16:04 +01 +0100 +01:00 +0100 Europe/Berlin"),
        ("HH:mm X XX ZZZZZ z", "-03:30", "11:34 -0330 -0330 -03:30 UTC-03:30"),
        ("HH:mm X z", "Z", "15:04 Z UTC"),
    ],
)
def test_a_time_is_written_in_a_zone(pattern: str, zone: str, text: str) -> None:
    assert format_time(TIME, pattern, parse_zone(zone)) == text


def test_of_two_equal_local_times_the_second_needs_an_offset() -> None:
    first, second = (datetime(2026, 11, 1, hour, 30, tzinfo=UTC) for hour in (5, 6))
    zone = parse_zone("America/New_York")

    texts = [format_time(time, "HH:mm X", zone) for time in (first, second)]
    assert [*texts, format_time(first, "HH:mm VV", zone)] == [
        "01:30 -04",
        "01:30 -05",
        "01:30 America/New_York",
    ]
    for pattern in ("dd HH:mm", "HH:mm VV", "HH:mm 'X'"):
        with pytest.raises(ValueError, match="occurs twice in America/New_York"):
            format_time(second, pattern, zone)


@pytest.mark.parametrize("zone", ["Europe/Nowhere", "", "../UTC", "+99:00", "Europe"])
def test_a_zone_that_is_not_known_is_refused(zone: str) -> None:
    with pytest.raises(ValueError, match="times cannot be written in the zone"):
        parse_zone(zone)


def test_a_time_that_the_zone_cannot_express_is_refused() -> None:
    with pytest.raises(ValueError, match="as far away as 9999-12-31"):
        format_time(datetime(9999, 12, 31, 23, tzinfo=UTC), "yyyy", parse_zone("+02:00"))
