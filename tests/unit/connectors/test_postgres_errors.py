"""What an error of Postgres means: an outage ends by itself, and anything else ends the query."""

from __future__ import annotations

import psycopg
import pytest

from millstream.connectors.postgres.client.errors import explain
from millstream.diagnostics.failure import MillstreamError, Outage

WHERE = "localhost:5432/shop"


@pytest.mark.parametrize("state", ["57P01", "57P05", "25P03", "25P04"])
def test_a_session_that_the_server_ends_is_an_outage(state: str) -> None:
    error = psycopg.errors.lookup(state)("terminating connection")

    explained = explain(error, WHERE)

    assert isinstance(explained, Outage)
    assert explained.what == f"Postgres at {WHERE} is temporarily unavailable: terminating connection"


@pytest.mark.parametrize("kind", [psycopg.OperationalError, psycopg.InterfaceError, psycopg.DatabaseError])
def test_a_lost_connection_is_an_outage(kind: type[psycopg.Error]) -> None:
    explained = explain(kind("the connection is lost"), WHERE)

    assert isinstance(explained, Outage)
    assert explained.what == f"Postgres at {WHERE} cannot be reached: the connection is lost"


def test_a_value_that_python_cannot_represent_is_not_an_outage() -> None:
    error = psycopg.DataError("timestamp too large (after year 10K): 'infinity'")

    explained = explain(error, WHERE)

    assert type(explained) is MillstreamError
    assert explained.what == (
        f"psycopg cannot convert a value of Postgres at {WHERE}: timestamp too large (after year 10K): 'infinity'"
    )
