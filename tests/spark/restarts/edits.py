"""Changes of pipelines, each with the verdict of `plan` and what Spark then does."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from aggregation_edits import AGGREGATIONS
from edit_words import (
    AFRESH,
    FALSE,
    NOTE,
    OK,
    ORDERS,
    PARTITIONS,
    REFUSED,
    RIGHT,
    ROCKSDB,
    SPLIT,
    SQL,
    STORE,
    WRONG,
    ZONE,
    Row,
)
from join_edits import JOINS
from processor_edits import PROCESSORS
from restart_run import Edit
from row_edits import ROWS
from source_edits import SOURCES

# What may be done to any query, with the verdict for one with state and one without.
_ANY: dict[str, tuple[dict[str, Any], str, str, str, str]] = {
    "nothing": ({}, OK, RIGHT, OK, RIGHT),
    "another trigger": ({"queries/out/trigger": "5 seconds"}, OK, RIGHT, OK, RIGHT),
    "more files a batch": ({f"{ORDERS}/json/max_files_per_trigger": 1000}, OK, "", OK, RIGHT),
    "a column of the source that nothing reads": ({f"{ORDERS}/schema/x": "string"}, NOTE, RIGHT, NOTE, RIGHT),
    "malformed records dropped": ({f"{ORDERS}/on_malformed": "drop"}, OK, RIGHT, OK, RIGHT),
    "other white space and a comment": (
        {SQL: "FROM orders=>\n  FROM   orders -- all of them\n"},
        OK,
        RIGHT,
        OK,
        RIGHT,
    ),
    "a query in between": ({SQL: "FROM orders=>FROM (SELECT * FROM orders) AS orders"}, OK, RIGHT, OK, RIGHT),
    "another sink": (
        {"queries/out/to": [{"console": {}}, {"parquet": "$IN/copy"}]},
        NOTE,
        RIGHT,
        NOTE,
        RIGHT,
    ),
    "another time zone": ({ZONE: "Asia/Tokyo"}, WRONG, "", NOTE, RIGHT),
    "more shuffle partitions": ({PARTITIONS: "5"}, SPLIT, RIGHT, OK, RIGHT),
    "RocksDB": ({STORE: ROCKSDB}, NOTE, RIGHT, NOTE, RIGHT),
}


_TABLE: dict[str, list[Row]] = {**ROWS, **AGGREGATIONS, **JOINS, **SOURCES, **PROCESSORS}

# What a run found, where the tables leave the outcome open or the input does not show it.
_FOUND: dict[str, tuple[str, str]] = {
    "totals: having on the key": (NOTE, RIGHT),
    "totals: watermark": (NOTE, RIGHT),
    "totals: another aggregation on top": (AFRESH, REFUSED),
    "windows: shorter delay": (NOTE, RIGHT),
    "windows: watermark of another time": (WRONG, RIGHT),
    "windows: complete mode": (WRONG, FALSE),
    "windows: session window": (AFRESH, REFUSED),
    "windows: filter below": (WRONG, RIGHT),
    "sessions: tumbling window": (AFRESH, REFUSED),
    "distinct: keys in another order": (NOTE, RIGHT),
    "distinct: filter below": (NOTE, RIGHT),
    "unrepeated: no deduplication": (AFRESH, REFUSED),
    "pairs: narrower bound": (NOTE, RIGHT),
    "pairs: stricter condition": (NOTE, RIGHT),
    "pairs: another key of one type": (AFRESH, REFUSED),
    "pairs: semi": (AFRESH, REFUSED),
    "pairs: filter on a side": (WRONG, RIGHT),
    "pairs: longer delay": (NOTE, RIGHT),
    "pairs: sides swapped": (WRONG, FALSE),
    "left: right": (AFRESH, REFUSED),
    "left: full": (AFRESH, REFUSED),
    "left: wider bound": (WRONG, FALSE),
    "semi: inner": (WRONG, RIGHT),
    "union: one source twice": (WRONG, RIGHT),
    "unrepeated: watermark of another time": (WRONG, RIGHT),
    "unrepeated: longer delay": (WRONG, RIGHT),
    "rows: RocksDB": (OK, RIGHT),
    "totals: more files a batch": (OK, RIGHT),
    "closed: more files a batch": (OK, RIGHT),
    "totals: another time zone": (NOTE, RIGHT),
    "closed: another time zone": (WRONG, FALSE),
    "totals: RocksDB": (OK, RIGHT),
    "closed: RocksDB": (OK, RIGHT),
}
# Refused, although the rows are right with the first input; with the second one they are wrong.
RIGHT_WITH_THIS_INPUT = {
    name for name, (verdict, outcome) in _FOUND.items() if outcome == RIGHT and verdict in (WRONG, AFRESH)
}


_STATELESS = ("rows", "union")


def _edits() -> list[Edit]:
    """Return every change of the tables; the changes of any query are made to three bases."""
    edits = [
        Edit(name, base, {SQL: change} if isinstance(change, str) else change, verdict, outcome)
        for base, rows in _TABLE.items()
        for name, change, verdict, outcome in rows
    ]
    for base in ("rows", "totals", "closed"):
        for name, (change, verdict, outcome, plain_verdict, plain_outcome) in _ANY.items():
            expected = (plain_verdict, plain_outcome) if base in _STATELESS else (verdict, outcome)
            edits.append(Edit(name, base, change, *expected))
    return [replace(edit, **_found(edit)) for edit in edits]


def _found(edit: Edit) -> dict[str, str]:
    return dict(zip(("verdict", "outcome"), _FOUND.get(str(edit), (edit.verdict, edit.outcome)), strict=True))


EDITS = _edits()
