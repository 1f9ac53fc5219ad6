"""Messages that several kinds of sinks share, and how they show user data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.diagnostics.failure import MillstreamError
from millstream.spec.secrets.secret import redact

if TYPE_CHECKING:
    from collections.abc import Mapping

# Longest part of a row in a message, in characters.
_SHOWN = 200


def to_printable_line(text: str) -> str:
    """Return one printable line of at most 200 characters, so that data in an error cannot control a terminal."""
    line = "".join(
        character if character.isprintable() else repr(character)[1:-1] for character in redact(text)
    )
    return line if len(line) <= _SHOWN else line[:_SHOWN] + "…"


def repeated_key_error(table: str, key: Mapping[str, object], rows: int, deletions: int) -> MillstreamError:
    """Return the error for a batch with several rows of one key, of which `deletions` delete the key's row.

    It is unknown which of them is the last, so the table would depend on where a batch ends.
    """
    values = ", ".join(f"{name} = {'null' if value is None else value}" for name, value in key.items())
    deletion_clause = f"; {deletions} of them delete{'s' * (deletions == 1)}" if deletions else ""
    return MillstreamError(
        f"{rows} rows of one batch have the same key for {table}: {to_printable_line(values)}{deletion_clause}",
        "use cdc with sequence_by instead of merge_on, so that the newest row of a key wins; or aggregate or "
        "remove duplicates by the key in the view, so that each batch has one row per key",
    )
