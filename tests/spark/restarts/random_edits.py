"""Small changes of a pipeline, one after another, at places that are drawn."""

from __future__ import annotations

import re
from copy import deepcopy
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Spec = dict[str, Any]
# A pattern in a view's SQL, and what may stand there instead.
_TEXTS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (r"\bsum\(", ("max(", "min(", "avg(", "count(")),
    (r"\b(?:max|min)\(", ("sum(", "min(", "max(", "first(")),
    (r"\bavg\(", ("sum(", "max(")),
    (r"\bcount\(", ("count(DISTINCT ", "max(")),
    (r"'\d+ (?:minutes?|hours?|seconds?)'", ("'5 minutes'", "'20 minutes'", "'1 hour'")),
    (r"(?i)INTERVAL '?\d+'? (?:MINUTES?|HOURS?)", ("INTERVAL 3 MINUTES", "INTERVAL 2 HOURS")),
    (r"(?<![\w'.])\d+(?![\w'.])", ("1", "3", "10")),
    (r" > ", (" < ", " >= ")),
    (r" = ", (" <> ", " <= ")),
    (r"(?i)\bLEFT (?:OUTER )?JOIN\b", ("JOIN", "FULL JOIN")),
    (r"(?i)(?<!LEFT )(?<!OUTER )\bJOIN\b", ("LEFT JOIN",)),
    (r"(?i)\bWHERE\b", ("WHERE length(string(1)) = 1 AND", "WHERE 1 < 0 OR")),
    (r"(?i)\bGROUP BY\b", ("WHERE hash(1) <> 0 GROUP BY",)),
    (r"(?i)\bSELECT\b", ("SELECT DISTINCT", "SELECT 1 AS one,")),
    (r"(?i)\bUNION ALL\b", ("UNION",)),
    (r"(?i)\bAS (?!STRING|BIGINT|DOUBLE|INT|TIMESTAMP|DATE)(\w+)(?=,|\s*$|\s+FROM)", (r"AS other",)),
    (r"\bupper\(|\blower\(|\btrim\(", ("upper(", "lower(", "")),
)


def list_places(spec: Spec) -> list[tuple[str, Callable[[Spec], None]]]:
    """Return what can be changed in a pipeline: a name, and a function that changes a copy of it."""
    places: list[tuple[str, Callable[[Spec], None]]] = []
    for view, entry in spec["views"].items():
        sql = entry.get("sql", "")
        for pattern, texts in _TEXTS:
            for match in re.finditer(pattern, sql):
                places += [
                    (f"{view}: {match.group()!r} -> {text!r}", _replace(view, match.span(), text))
                    for text in texts
                    if text != match.group()
                ]
    for source, entry in spec["sources"].items():
        if "watermark" in entry:
            places += [
                (
                    f"{source}: delay {delay}",
                    _assign(("sources", source, "watermark", "delay_threshold"), delay),
                )
                for delay in ("6 minutes", "45 minutes")
            ]
        places.append(
            (f"{source}: one column more", _assign(("sources", source, "schema", "added"), "string"))
        )
        if not entry.get("static"):
            places.append(
                (f"{source}: more files", _assign(("sources", source, "json", "max_files_per_trigger"), 9))
            )
    places += [
        (f"output mode {mode}", _assign(("queries", "out", "output_mode"), mode))
        for mode in ("append", "update", "complete")
        if mode != spec["queries"]["out"]["output_mode"]
    ]
    places.append(("zone", _assign(("spark", "spark.sql.session.timeZone"), "Asia/Tokyo")))
    places.append(("trigger", _assign(("queries", "out", "trigger"), "7 seconds")))
    others = [name for name in (*spec["views"], *spec["sources"]) if name != spec["queries"]["out"]["from"]]
    places += [(f"from {name}", _assign(("queries", "out", "from"), name)) for name in others]
    return places


def apply_edits(spec: Spec, numbers: Sequence[int]) -> tuple[str, Spec]:
    """Return a pipeline after some changes, and their names. A number says which of the possible ones."""
    changed, names = deepcopy(spec), []
    for number in numbers:
        places = list_places(changed)
        name, change = places[number % len(places)]
        change(changed)
        names.append(name)
    return "; ".join(names), changed


def _replace(view: str, span: tuple[int, int], text: str) -> Callable[[Spec], None]:
    def change(spec: Spec) -> None:
        sql = spec["views"][view]["sql"]
        spec["views"][view]["sql"] = sql[: span[0]] + text + sql[span[1] :]

    return change


def _assign(path: tuple[str, ...], value: Any) -> Callable[[Spec], None]:
    def change(spec: Spec) -> None:
        place = spec
        for key in path[:-1]:
            place = place.setdefault(key, {})
        place[path[-1]] = value

    return change
