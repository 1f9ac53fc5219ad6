"""Sessions, which begin long before they end: a backfill leaves those that are open to the query."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from millstream.diagnostics.failure import InvalidInput
from spark.backfill.conftest import SPEC, figures, order

if TYPE_CHECKING:
    from spark.backfill.conftest import Shop

pytestmark = pytest.mark.usefixtures("interpreted", "small_batches")

# With the orders of the shop: two sessions, and a third one that begins at 13:00 and is open for half an hour.
LONG = ("13:09:00", "13:18:00", "13:27:00")
CLOSED = [("12:01", "12:12", 2), ("12:14", "12:31", 2)]


@pytest.fixture
def sessions(shop: Shop) -> Shop:
    """A query of sessions that has run over all orders, with a table without a key."""
    shop.spec = SPEC.replace(
        "queries:\n",
        "  visits: |\n    SELECT session_window.start AS since, session_window.end AS until, count(*) AS n\n"
        "    FROM orders GROUP BY session_window(at, '10 minutes'), amount > 0\n"
        "queries:\n  visits: {to: {delta: visits}}\n",
    )
    shop.add_lines(*(order(f"l{number}", at) for number, at in enumerate(LONG)))
    shop.stream("visits")
    return shop


def visits(shop: Shop, name: str = "visits") -> list[tuple[Any, ...]]:
    return [(f"{since:%H:%M}", f"{until:%H:%M}", n) for since, until, n in shop.rows(name)]


def test_a_session_that_is_open_is_left_to_the_query(sessions: Shop) -> None:
    assert visits(sessions) == CLOSED
    sessions.delete("visits", "n = 2 AND since < '2026-01-01T12:10:00Z'")

    report = sessions.backfill("visits")

    assert (report.outcomes[0].added, visits(sessions)) == (1, CLOSED)
    assert "sessions that end after 2026-01-01 13:17:00+00:00 are left out" in report.notes[0]
    sessions.add_lines(order("last", "15:00:00"))
    sessions.stream("visits")
    assert visits(sessions) == [*CLOSED, ("13:00", "13:37", 4)]
    assert figures(sessions.compare("visits")) == (0, 0, 0)


def test_a_range_of_sessions_is_replaced_without_those_that_are_open(sessions: Shop) -> None:
    sessions.update("visits", n="0")

    report = sessions.backfill("visits", start="2026-01-01", replace=True)

    assert (report.outcomes[0].added, report.outcomes[0].deleted) == (2, 2)
    assert visits(sessions) == CLOSED


def test_a_range_that_begins_inside_a_session_does_not_cut_it(sessions: Shop) -> None:
    compared = sessions.compare("visits", start="2026-01-01 12:20", end="2026-01-01 12:40")

    assert (compared.expected, figures(compared)) == (0, (0, 0, 0))


def test_without_the_end_of_a_session_the_table_of_the_query_is_refused(sessions: Shop) -> None:
    sessions.spec = sessions.spec.replace("session_window.end AS until, ", "")

    with pytest.raises(InvalidInput, match="its result does not contain their end"):
        sessions.backfill("visits")
    report = sessions.backfill("visits", into="side")

    assert len(sessions.rows("side")) == report.outcomes[0].added == 3
    assert visits(sessions) == CLOSED
