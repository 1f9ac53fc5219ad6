"""The live page reads rows of a table that somebody may have locked, and that may have any value."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import psycopg
import pytest

from millstream.connectors.postgres.sink import PostgresSink
from millstream.diagnostics.failure import MillstreamError

if TYPE_CHECKING:
    from millstream.devstack.supervisor.state import Endpoints


def test_a_preview_does_not_wait_for_a_locked_table(stack: Endpoints) -> None:
    sink = PostgresSink.model_validate({"url": stack.postgres, "table": "locked_for_preview"})
    with psycopg.connect(stack.postgres, autocommit=True) as connection:
        connection.execute("CREATE TABLE locked_for_preview AS SELECT 1 AS id")
        assert sink.rows(3) == (["id"], [[1]])
        with connection.transaction():
            connection.execute("LOCK TABLE locked_for_preview IN ACCESS EXCLUSIVE MODE")
            with pytest.raises(MillstreamError, match="lock"):
                sink.rows(3)


def test_a_time_that_python_does_not_have_is_shown_as_text(stack: Endpoints) -> None:
    sink = PostgresSink.model_validate({"url": stack.postgres, "table": "public.any_times"})
    with psycopg.connect(stack.postgres, autocommit=True) as connection:
        connection.execute(
            "CREATE TABLE public.any_times AS SELECT * FROM (VALUES"
            " (1, 'infinity'::timestamptz, '-infinity'::timestamp, '20000-01-31'::date, '24:00'::time),"
            " (2, '2026-01-31 12:00+00', '2026-01-31 12:00', '2026-01-31', '12:00')"
            ") AS rows (id, at, plain, day, clock)"
        )

    names, rows = sink.rows(3) or ([], [])

    noon = datetime(2026, 1, 31, 12, tzinfo=UTC)
    assert names == ["id", "at", "plain", "day", "clock"]
    assert rows == [
        [2, noon, noon.replace(tzinfo=None), noon.date(), noon.time()],
        [1, "infinity", "-infinity", "20000-01-31", "24:00:00"],
    ]
