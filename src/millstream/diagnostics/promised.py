"""The guarantees of a pipeline's sinks as a table: query, sink, guarantee, weakest link."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.diagnostics.snippet import mask, printable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

HEAD = ("query", "sink", "guarantee", "weakest link")

# Wider sinks push their row to the right and leave the others in line.
WIDEST = 40


def table(guarantees: Sequence[Mapping[str, Any]]) -> list[str]:
    """A line a sink below a head. Guarantees are mappings as the JSON of `check` has them.

    The weakest link is a sentence with its place; a dash where a promise has no condition and could not be
    stronger.
    """
    rows = [HEAD, *(_row(one) for one in guarantees)]
    # The last column is not padded; a path of any length may stand in the second.
    wide = [max(len(row[place]) for row in rows if len(row[place]) <= WIDEST) for place in range(3)]
    return ["  ".join([*(f"{row[place]:<{wide[place]}}" for place in range(3)), row[3]]) for row in rows]


def _row(one: Mapping[str, Any]) -> tuple[str, str, str, str]:
    query, sink = (printable(mask(str(one[key]))) for key in ("query", "sink"))
    return query, sink, str(one["guarantee"]), _weakest(one.get("weakest"))


def _weakest(link: Mapping[str, Any] | None) -> str:
    if not link:
        return "-"
    place = f" ({link['file']}:{link['line']})" if link.get("file") else ""
    text = str(link["text"])
    shown = text if place and place in text else f"{text}{place}"
    return printable(mask(" ".join(shown.splitlines())))
