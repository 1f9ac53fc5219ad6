"""Turns what Postgres says into one sentence and a cure, and tells an outage from a defect."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from millstream.diagnostics.failure import MillstreamError, NotReady, Outage
from millstream.spec.secret import redact

if TYPE_CHECKING:
    import psycopg

# SQLSTATE classes and codes after which the same statement may succeed later: connection lost, resources
# short, server going down or coming up, deadlock, serialization, lock or statement timeout.
_PASSING_CLASSES = ("08", "53")
_PASSING = frozenset({"57P01", "57P02", "57P03", "57P04", "57014", "40001", "40P01", "55P03", "25P03"})

# A refused connection carries no SQLSTATE: libpq gives the server's text only, in its lc_messages.
_REFUSALS: tuple[tuple[str, str, str], ...] = (
    (r"password authentication failed for user \"(.*?)\"",
     "Postgres at {where} refuses the password of role '{0}'",
     "correct the password in the url or in `password`"),
    (r"no password supplied", "Postgres at {where} wants a password, and none is given",
     "put it into the url or into `password`"),
    (r"database \"(.*?)\" does not exist", "Postgres at {where} has no database '{0}'",
     "create it with createdb, or correct the url"),
    (r"role \"(.*?)\" does not exist", "Postgres at {where} has no role '{0}'",
     "create it with createuser, or correct the url"),
    (r"no pg_hba.conf entry", "Postgres at {where} does not admit this role from this machine",
     "add a line to the server's pg_hba.conf"),
    (r"server does not support SSL", "Postgres at {where} does not speak TLS, and the url asks for it",
     "turn TLS on in the server, or say sslmode=disable where nobody can listen"),
    (r"certificate verify failed|root certificate|server certificate",
     "Postgres at {where} shows a certificate that cannot be verified",
     "name the authority's file with sslrootcert=, or say sslmode=require to skip verification"),
)  # fmt: skip

# Longest piece of a row that a message shows; the rest of it stays in the database's own log.
_SHOWN = 200


def clean(text: str) -> str:
    """One printable line of at most 200 characters: data in an error must not steer a terminal."""
    line = "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in redact(text))
    return line if len(line) <= _SHOWN else line[:_SHOWN] + "…"


def explain(error: psycopg.Error, where: str, table: str = "") -> MillstreamError:
    """What a person should read; an `Outage` when trying again may help. Raise it `from` the error."""
    state = error.sqlstate or ""
    if not state:
        return _unconnected(error, where)
    said = clean(error.diag.message_primary or str(error))
    if state.startswith(_PASSING_CLASSES) or state in _PASSING:
        return Outage(f"Postgres at {where} cannot go on for the moment: {said}", "it is tried again")
    if state == "42501":
        return NotReady(
            f"Postgres at {where} refuses: {said}", "grant the role that right, or connect as another role"
        )
    if state == "23505":
        key = clean(error.diag.message_detail or said)
        return MillstreamError(
            f"table {table} holds a row with the same key: {key}",
            "add merge_on with the key's columns to replace such rows, or drop repeated rows in the view",
        )
    if state == "23502":
        return MillstreamError(
            f"column '{error.diag.column_name}' of table {table} must have a value, and a row has none",
            f"leave out rows where {error.diag.column_name} IS NULL in the view, or give them a value",
        )
    if state[:2] in ("22", "23"):
        place = clean((error.diag.context or "").split("\n")[0])
        return MillstreamError(
            f"table {table} refuses a row: {said}" + (f" ({place})" if place else ""),
            "cast or filter the column in the view, or change the table's column",
        )
    if state in ("42P01", "42703", "3F000"):
        return NotReady(
            f"Postgres at {where}: {said}", "the table was changed while the query ran; start the query again"
        )
    return MillstreamError(f"Postgres at {where} refuses a statement ({state}): {said}")


def _unconnected(error: psycopg.Error, where: str) -> MillstreamError:
    """An error that never reached a statement, or lost its connection in the middle of one."""
    text = str(error)
    for pattern, what, fix in _REFUSALS:
        if found := re.search(pattern, text):
            return NotReady(what.format(*found.groups(), where=where), fix)
    reason = clean(text.strip().split("\n")[0].rpartition("failed: ")[2])
    return Outage(
        f"Postgres at {where} cannot be reached: {reason}", "start it, or correct host and port in the url"
    )
