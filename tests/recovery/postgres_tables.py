"""Tables of Postgres that no other test knows, and what is written to them."""

from __future__ import annotations

import itertools
from contextlib import closing
from typing import TYPE_CHECKING, Any

import psycopg

from millstream.connectors import registry
from recovery.dying_writer import writer_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from millstream.connectors.api.sink import Sink
    from millstream.devstack.supervisor.state import Endpoints

# Not in a file of tests: pytest loads those a second time, under another name, and a number would be used twice.
_count = itertools.count()
WAYS = ("driver", "tasks")


def sink_of(stack: Endpoints, way: str, **settings: Any) -> Sink:
    table = f"rows_{next(_count)}"
    fields = {"url": stack.postgres, "table": table, "ledger_schema": table, "through": way}
    return registry.sinks()["postgres"].model_validate(fields | settings)


def write_frame(sink: Sink, frame: DataFrame, mode: str = "append", batch_id: int = 0) -> None:
    with closing(writer_of(sink, mode)) as writer:
        writer.open(frame.sparkSession, frame.schema)
        writer.write(frame, batch_id)


def make(stack: Endpoints, text: str) -> None:
    """Make a table in public: the stack's role has the name of a ledger's schema, which would come first."""
    with psycopg.connect(stack.postgres, autocommit=True, options="-c search_path=public") as connection:
        connection.execute(text)


def rows_of(stack: Endpoints, sink: Sink, columns: str = "*") -> list[tuple[Any, ...]]:
    with psycopg.connect(stack.postgres, options="-c timezone=UTC") as connection:
        return connection.execute(f"SELECT {columns} FROM {sink.target()} ORDER BY 1").fetchall()
