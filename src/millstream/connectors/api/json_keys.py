"""Check that the keys of maps can be names of JSON fields."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.connectors.api.ddl import map_key_types
from millstream.connectors.api.values.problem import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# Spark 4.2 writes the internal number of such a key, and for bytes another text in each run. Tested.
_NOT_AS_TEXT = frozenset({"binary", "date", "timestamp", "timestamp_ntz", "time", "interval", "span"})


def json_key_problems(columns: Mapping[str, str]) -> Iterator[Problem]:
    """Yield the columns, by name and type, with maps whose keys Spark does not write as text into JSON."""
    for name, kind in columns.items():
        if keys := sorted(_NOT_AS_TEXT.intersection(map_key_types(kind))):
            text = "hex(k)" if keys == ["binary"] else "CAST(k AS STRING)"
            yield Problem(
                None,
                f"JSON cannot store the keys of column '{name}' of type {kind}",
                f"convert them in the view, as with transform_keys({name}, (k, v) -> {text})",
                "Spark writes an internal number instead of a date or a time, and another text for the same bytes in "
                "each run",
            )
