"""A table of the guarantees of a pipeline's sinks: query, sink, guarantee, weakest link."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.diagnostics.snippet import escape_control, mask_secrets

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

HEAD = ("query", "sink", "guarantee", "weakest link")

# A wider sink shifts only its own row to the right.
WIDEST = 40


def format_guarantee_table(guarantees: Sequence[Mapping[str, Any]]) -> list[str]:
    """Format a header and one line per sink. Guarantees are mappings in the form of the JSON of `check`.

    The weakest link is a sentence with its position; a dash if the guarantee has no condition and cannot be
    stronger.
    """
    rows = [HEAD, *(_build_row(guarantee) for guarantee in guarantees)]
    # The last column is not padded; the second may contain a path of any length.
    widths = [max(len(row[index]) for row in rows if len(row[index]) <= WIDEST) for index in range(3)]
    return ["  ".join([*(f"{row[index]:<{widths[index]}}" for index in range(3)), row[3]]) for row in rows]


def _build_row(guarantee: Mapping[str, Any]) -> tuple[str, str, str, str]:
    query, sink = (escape_control(mask_secrets(str(guarantee[key]))) for key in ("query", "sink"))
    return query, sink, str(guarantee["guarantee"]), _format_weakest(guarantee.get("weakest"))


def _format_weakest(link: Mapping[str, Any] | None) -> str:
    if not link:
        return "-"
    position = f" ({link['file']}:{link['line']})" if link.get("file") else ""
    text = str(link["text"])
    cell = text if position and position in text else f"{text}{position}"
    return escape_control(mask_secrets(" ".join(cell.splitlines())))
