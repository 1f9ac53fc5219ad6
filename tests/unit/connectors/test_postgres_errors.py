"""What an error of Postgres means: an outage ends by itself, and anything else ends the query."""

from __future__ import annotations

import psycopg
import pytest

from millstream.connectors.postgres.client.errors import explain
from millstream.diagnostics.failure import Outage

WHERE = "localhost:5432/shop"


@pytest.mark.parametrize("state", ["57P01", "57P05", "25P03", "25P04"])
def test_a_session_that_the_server_ends_is_an_outage(state: str) -> None:
    error = psycopg.errors.lookup(state)("terminating connection")

    explained = explain(error, WHERE)

    assert isinstance(explained, Outage)
    assert explained.what == f"Postgres at {WHERE} is temporarily unavailable: terminating connection"
