"""Facts about PostgreSQL that the rest of the package reads through the registry."""

from __future__ import annotations

from millstream.connectors.api.system import System

POSTGRES = System(
    failpoints={
        "postgres.staged": "its rows are ready, and the transaction has not begun",
        "postgres.open": "its rows are in the table, and the transaction is not committed",
        "postgres.committed": "the transaction is committed, and the run has no confirmation yet",
    },
    undecided="postgres.open",
)
