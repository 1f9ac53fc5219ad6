"""Turn Postgres errors into one sentence and a fix, and distinguish an outage from a defect."""

from __future__ import annotations

import re

import psycopg

from millstream.connectors.api.messages import to_printable_line
from millstream.diagnostics.failure import MillstreamError, NotReady, Outage

# SQLSTATE classes and codes after which the same statement may succeed later: connection lost, resources short,
# server stopping or starting, deadlock, serialization failure, and the timeouts of a lock, a statement, a transaction
# and an idle session. 25006 is a standby that is not yet promoted, or that an address names for a while after a
# failover.
_TRANSIENT_CLASSES = ("08", "53")
_TRANSIENT = frozenset(
    {
        "57P01", "57P02", "57P03", "57P04", "57P05", "57014", "40001", "40P01", "55P03", "25P03", "25P04", "25006",
    }
)  # fmt: skip

# A refused connection has no SQLSTATE: libpq returns only the server's text, in the language of lc_messages.
_REFUSALS: tuple[tuple[str, str, str], ...] = (
    (r"password authentication failed for user \"(.*?)\"",
     "Postgres at {where} rejects the password of role '{0}'",
     "correct the password in the url or in `password`"),
    (r"no password supplied", "Postgres at {where} requires a password",
     "add it to the url or set `password`"),
    (r"database \"(.*?)\" does not exist", "Postgres at {where} has no database '{0}'",
     "create it with createdb, or correct the url"),
    (r"role \"(.*?)\" does not exist", "Postgres at {where} has no role '{0}'",
     "create it with createuser, or correct the url"),
    (r"no pg_hba.conf entry", "Postgres at {where} does not permit this role to connect from this machine",
     "add a line to the server's pg_hba.conf"),
    (r"server does not support SSL", "Postgres at {where} does not support TLS, but the url requires it",
     "enable TLS on the server, or use sslmode=disable on a trusted network"),
    (r"certificate verify failed|root certificate|server certificate",
     "Postgres at {where} presents a certificate that cannot be verified",
     "set sslrootcert= to the certificate authority's file, or use sslmode=require to skip verification"),
)  # fmt: skip


def explain(error: psycopg.Error, where: str, table: str = "") -> MillstreamError:
    """Explain the error; an `Outage` if a retry may help. Raise the result `from` the error."""
    state = error.sqlstate or ""
    message = to_printable_line(error.diag.message_primary or str(error))
    if not state:
        if isinstance(error, psycopg.DataError):
            # psycopg raises it itself, as for the time 'infinity'. A lost connection may be a plain DatabaseError.
            return MillstreamError(f"psycopg cannot convert a value of Postgres at {where}: {message}")
        return _explain_connection_failure(error, where)
    if state.startswith(_TRANSIENT_CLASSES) or state in _TRANSIENT:
        return Outage(
            f"Postgres at {where} is temporarily unavailable: {message}", "the statement is retried"
        )
    if state == "42501":
        return NotReady(
            f"Postgres at {where} denies permission: {message}",
            "grant the role that permission, or connect as another role",
        )
    if state == "23505":
        key = to_printable_line(error.diag.message_detail or message)
        return MillstreamError(
            f"table {table} already has a row with the same key: {key}",
            "add merge_on with the key columns to replace such rows, or remove duplicates in the view",
        )
    if state == "23502":
        return MillstreamError(
            f"column '{error.diag.column_name}' of table {table} requires a value, but a row has none",
            f"filter out rows where {error.diag.column_name} IS NULL in the view, or give them a value",
        )
    if state[:2] in ("22", "23"):
        context = to_printable_line((error.diag.context or "").split("\n")[0])
        return MillstreamError(
            f"table {table} rejects a row: {message}" + (f" ({context})" if context else ""),
            "cast or filter the column in the view, or change the table's column",
        )
    if state in ("42P01", "42703", "3F000"):
        return NotReady(
            f"Postgres at {where}: {message}", "the table was changed while the query ran; restart the query"
        )
    return MillstreamError(f"Postgres at {where} rejected a statement ({state}): {message}")


def _explain_connection_failure(error: psycopg.Error, where: str) -> MillstreamError:
    """Explain an error before any statement, or a connection lost during one."""
    text = str(error)
    for pattern, message, fix in _REFUSALS:
        if match := re.search(pattern, text):
            return NotReady(message.format(*match.groups(), where=where), fix)
    reason = to_printable_line(text.strip().split("\n")[0].rpartition("failed: ")[2])
    return Outage(
        f"Postgres at {where} cannot be reached: {reason}", "start it, or correct host and port in the url"
    )
