"""A stretch of event time as conditions on rows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

from millstream.connectors.api.values.event_time_range import EventTimeRange
from millstream.connectors.postgres.table import Table
from millstream.connectors.postgres.table_reader import range_condition
from millstream.spec.location import Location

DAY = datetime(2026, 1, 1, tzinfo=UTC)
NEXT = datetime(2026, 1, 2, 2, tzinfo=timezone(timedelta(hours=2)))


def test_sql_has_the_start_and_has_not_the_end() -> None:
    assert EventTimeRange(("at",), DAY, NEXT).sql() == (
        "`at` >= TIMESTAMP '2026-01-01 00:00:00Z' AND `at` < TIMESTAMP '2026-01-02 00:00:00Z'"
    )


def test_a_field_of_a_column_is_quoted_part_by_part() -> None:
    assert EventTimeRange(("window", "sta`rt"), DAY).sql().startswith("`window`.`sta``rt` >= ")


def test_a_cut_that_is_open_on_both_sides_has_every_row() -> None:
    assert (EventTimeRange(("at",)).sql(), EventTimeRange().is_unbounded, str(EventTimeRange())) == (
        "true",
        True,
        "all of its rows",
    )


def test_as_much_as_lies_before_a_moment() -> None:
    assert EventTimeRange(("at",), DAY, NEXT).before(DAY).end == DAY
    assert EventTimeRange(("at",), DAY, DAY).before(NEXT).end == DAY
    assert EventTimeRange(("at",), DAY).before(NEXT).end == NEXT


def postgres(kind: str, hours: int = 0) -> str:
    def local(moment: datetime) -> datetime:
        return moment.astimezone(timezone(timedelta(hours=hours))).replace(tzinfo=None)

    table = Table("t", ("at",), frozenset(), frozenset(), {}, {"at": kind}, {"at": kind})
    return range_condition(EventTimeRange(("at",), DAY, NEXT), table, local).as_string()


def test_postgres_compares_in_the_type_of_its_column() -> None:
    assert postgres("date") == (
        """"at" >= '2026-01-01 00:00:00'::timestamp AND "at" < '2026-01-02 00:00:00'::timestamp"""
    )
    assert "'2026-01-02 00:00:00'::timestamp" in postgres("timestamp")
    assert "+02:00'::timestamptz" in postgres("timestamptz")


def test_postgres_compares_times_without_a_zone_with_those_of_the_sessions_zone() -> None:
    assert postgres("timestamp", -5).endswith("""< '2026-01-01 19:00:00'::timestamp""")
    # A date is its midnight, as in Spark. The date of the limit alone would exclude the first of January.
    assert postgres("date", -5).endswith("""< '2026-01-01 19:00:00'::timestamp""")
    assert "+02:00'::timestamptz" in postgres("timestamptz", -5)


def test_a_mere_name_is_a_place_beside_and_a_path_is_a_path() -> None:
    assert Location("/lake/funnel/").beside("side") == "/lake/side"
    assert Location("funnel").beside("side") == "./side"
    assert Location("/lake/funnel").beside("/other/side") == "/other/side"
