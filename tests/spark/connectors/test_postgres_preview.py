"""The live page reads rows of a table that somebody may have locked."""

from __future__ import annotations

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
