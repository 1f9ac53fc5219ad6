"""End the sessions of Millstream in a server of the local stack, as a network failure does."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def cut_postgres_sessions(environment: Mapping[str, str]) -> None:
    """End every session of Millstream in the database of a stack, given by its environment variables."""
    import psycopg  # noqa: PLC0415 - the client is slow to import

    with psycopg.connect(environment["POSTGRES_URL"], autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'millstream%'"
        )


CAN_CUT_SESSIONS: Mapping[str, Callable[[Mapping[str, str]], None]] = {"postgres": cut_postgres_sessions}
"""Functions that end the sessions, for the servers that can."""
