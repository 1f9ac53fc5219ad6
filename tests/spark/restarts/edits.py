"""Changes of pipelines, each with the verdict of `plan` and what Spark then does."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from restart_run import DELETE, Edit

SQL, MODE, ORDERS, PAYS = "views/result/sql", "queries/out/output_mode", "sources/orders", "sources/pays"
DELAY = f"{ORDERS}/watermark/delay_threshold"
OK, NOTE, AFRESH, WRONG, SPLIT = (
    "continues",
    "continues_with_note",
    "start_afresh",
    "silently_wrong",
    "repartition",
)
RIGHT, FALSE, REFUSED = "right", "wrong", "refused"
ZONE, ANSI = "spark/spark.sql.session.timeZone", "spark/spark.sql.ansi.enabled"
PARTITIONS = "spark/spark.sql.shuffle.partitions"
STORE = "spark/spark.sql.streaming.stateStore.providerClass"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"

Row = tuple[str, Any, str, str]

_MIN_MAX = "min(w) AS lo, max(w) AS hi"
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

# Base: name of the change, what is changed, verdict, outcome.
_TABLE: dict[str, list[Row]] = {
    "rows": [
        ("filter", "v > 1=>v > 4", NOTE, RIGHT),
        ("filter removed", " WHERE v > 1=>", NOTE, RIGHT),
        ("filter on another column", "v > 1=>w > 2", NOTE, RIGHT),
        ("one column more", "v + w AS t=>v + w AS t, w", NOTE, RIGHT),
        ("one column less", ", v + w AS t=>", NOTE, RIGHT),
        ("column renamed", "AS t=>AS total", NOTE, RIGHT),
        ("another expression", "v + w AS t=>v - w AS t", NOTE, RIGHT),
        ("another type", "v + w AS t=>CAST(v + w AS string) AS t", NOTE, RIGHT),
        ("columns in another order", "id, k, v,=>v, k, id,", OK, RIGHT),
        ("rows repeated", "FROM orders=>FROM orders LATERAL VIEW explode(array(1, 2)) e AS c", NOTE, RIGHT),
        (
            "watermark",
            {f"{ORDERS}/watermark": {"event_time": "at", "delay_threshold": "1 minute"}},
            NOTE,
            RIGHT,
        ),
        ("update mode", {MODE: "update"}, NOTE, RIGHT),
        (
            "aggregation",
            {
                SQL: "SELECT id, k, v, v + w AS t FROM orders WHERE v > 1=>SELECT k, sum(v) AS s FROM orders GROUP BY k",
                MODE: "update",
            },
            AFRESH,
            REFUSED,
        ),
        ("distinct", {SQL: "SELECT id=>SELECT DISTINCT id", MODE: "update"}, AFRESH, REFUSED),
        ("limit", "v > 1=>v > 1 LIMIT 100", AFRESH, REFUSED),
        (
            "deduplication",
            {
                f"{ORDERS}/watermark": {"event_time": "at", "delay_threshold": "1 minute"},
                f"{ORDERS}/drop_duplicates_within_watermark": ["id"],
            },
            AFRESH,
            REFUSED,
        ),
    ],
    "totals": [
        ("sum to max", "sum(v)=>max(v)", WRONG, FALSE),
        ("sum to min", "sum(v)=>min(v)", WRONG, FALSE),
        ("sum to count", "sum(v)=>count(v)", WRONG, FALSE),
        ("count to sum", "count(*)=>sum(1)", AFRESH, REFUSED),
        ("sum of another column", "sum(v)=>sum(w)", WRONG, FALSE),
        ("sum of an expression", "sum(v)=>sum(v * 2)", WRONG, FALSE),
        ("result of a sum", "sum(v) AS s=>sum(v) * 2 AS s", NOTE, RIGHT),
        ("sum with a filter", "sum(v)=>sum(v) FILTER (WHERE v > 3)", WRONG, FALSE),
        ("min and max swapped", f"{_MIN_MAX}=>max(w) AS hi, min(w) AS lo", WRONG, FALSE),
        ("names of min and max swapped", f"{_MIN_MAX}=>min(w) AS hi, max(w) AS lo", NOTE, RIGHT),
        ("sum to average", "sum(v)=>avg(v)", AFRESH, REFUSED),
        ("sum to list", "sum(v)=>collect_list(v)", AFRESH, REFUSED),
        ("sum of another type", "sum(v)=>sum(CAST(v AS double))", AFRESH, REFUSED),
        ("one aggregate more", "count(*) AS n=>count(*) AS n, avg(v) AS a", AFRESH, REFUSED),
        ("one aggregate less", ", count(*) AS n=>", AFRESH, REFUSED),
        ("one aggregate twice", "count(*) AS n=>count(*) AS n, count(*) AS m", NOTE, RIGHT),
        ("count(*) to count(1)", "count(*)=>count(1)", OK, RIGHT),
        ("key renamed", "SELECT k,=>SELECT k AS key,", NOTE, RIGHT),
        (
            "key in upper case",
            {
                SQL: "SELECT upper(k) AS k, sum(v) AS s, min(w) AS lo, max(w) AS hi, count(*) AS n FROM orders GROUP BY upper(k)"
            },
            WRONG,
            FALSE,
        ),
        (
            "key of another column",
            {
                SQL: "SELECT g AS k, sum(v) AS s, min(w) AS lo, max(w) AS hi, count(*) AS n FROM orders GROUP BY g"
            },
            WRONG,
            FALSE,
        ),
        (
            "key changed in a query below",
            "FROM orders=>FROM (SELECT lower(k) AS k, v, w FROM orders) AS o",
            WRONG,
            FALSE,
        ),
        (
            "key of another type",
            {
                SQL: "SELECT v AS k, sum(v) AS s, min(w) AS lo, max(w) AS hi, count(*) AS n FROM orders GROUP BY v"
            },
            AFRESH,
            REFUSED,
        ),
        ("key added", "GROUP BY k=>GROUP BY k, g", AFRESH, REFUSED),
        (
            "key removed",
            {SQL: "SELECT sum(v) AS s, min(w) AS lo, max(w) AS hi, count(*) AS n FROM orders"},
            AFRESH,
            REFUSED,
        ),
        ("filter below", "FROM orders=>FROM orders WHERE v > 4", WRONG, FALSE),
        (
            "rows repeated below",
            "FROM orders=>FROM orders LATERAL VIEW explode(array(1, 2)) e AS c",
            WRONG,
            FALSE,
        ),
        ("having", "GROUP BY k=>GROUP BY k HAVING sum(v) > 10", NOTE, RIGHT),
        ("having on the key", "GROUP BY k=>GROUP BY k HAVING k = 'a'", WRONG, ""),
        (
            "value changed in a query below",
            "FROM orders=>FROM (SELECT k, v + 1 AS v, w FROM orders) AS o",
            WRONG,
            FALSE,
        ),
        (
            "columns in another order",
            {SQL: "SELECT sum(v) AS s, k, min(w) AS lo, max(w) AS hi, count(*) AS n FROM orders GROUP BY k"},
            OK,
            RIGHT,
        ),
        ("complete mode", {MODE: "complete"}, NOTE, RIGHT),
        (
            "watermark",
            {f"{ORDERS}/watermark": {"event_time": "at", "delay_threshold": "10 minutes"}},
            NOTE,
            "",
        ),
        (
            "another aggregation on top",
            {
                SQL: "SELECT s, count(*) AS n FROM (SELECT k, sum(v) AS s FROM orders GROUP BY k) GROUP BY s",
                MODE: "complete",
            },
            AFRESH,
            "",
        ),
        ("no aggregation", {SQL: "SELECT k, v AS s FROM orders", MODE: "append"}, AFRESH, REFUSED),
        ("value of another type in the source", {f"{ORDERS}/schema/v": "double"}, AFRESH, REFUSED),
    ],
    "windows": [
        ("longer window", "10 minutes=>15 minutes", WRONG, FALSE),
        ("shorter window", "10 minutes=>5 minutes", WRONG, FALSE),
        ("sliding window", "'10 minutes'=>'10 minutes', '5 minutes'", AFRESH, REFUSED),
        ("window with another start", "'10 minutes'=>'10 minutes', '10 minutes', '3 minutes'", WRONG, FALSE),
        (
            "window of another time",
            {SQL: "window(at,=>window(at2,", f"{ORDERS}/watermark/event_time": "at2"},
            WRONG,
            FALSE,
        ),
        ("longer delay", {DELAY: "20 minutes"}, NOTE, RIGHT),
        ("shorter delay", {DELAY: "5 minutes"}, NOTE, ""),
        ("watermark of another time", {f"{ORDERS}/watermark/event_time": "at2"}, WRONG, ""),
        ("no watermark", {f"{ORDERS}/watermark": DELETE}, NOTE, RIGHT),
        ("key added", "'10 minutes'), k=>'10 minutes'), k, g", AFRESH, REFUSED),
        ("key renamed", " k, sum=> k AS key, sum", NOTE, RIGHT),
        (
            "keys in another order",
            "GROUP BY window(at, '10 minutes'), k=>GROUP BY k, window(at, '10 minutes')",
            AFRESH,
            REFUSED,
        ),
        ("end instead of start", "window.start=>window.end", NOTE, RIGHT),
        ("append mode", {MODE: "append"}, NOTE, RIGHT),
        ("complete mode", {MODE: "complete"}, WRONG, ""),
        (
            "session window",
            {
                SQL: "SELECT session_window.start AS since, k, sum(v) AS s FROM orders GROUP BY session_window(at, '10 minutes'), k"
            },
            WRONG,
            "",
        ),
        ("filter below", "FROM orders=>FROM orders WHERE v > 4", WRONG, FALSE),
        ("sum to max", "sum(v)=>max(v)", WRONG, FALSE),
        ("one aggregate more", "sum(v) AS s=>sum(v) AS s, count(*) AS n", AFRESH, REFUSED),
        ("deduplication below", {f"{ORDERS}/drop_duplicates_within_watermark": ["id"]}, AFRESH, REFUSED),
    ],
    "closed": [
        ("longer window", "10 minutes=>15 minutes", WRONG, FALSE),
        ("longer delay", {DELAY: "15 minutes"}, NOTE, RIGHT),
        ("sum to max", "sum(v)=>max(v)", WRONG, FALSE),
        ("having", "'10 minutes'), k=>'10 minutes'), k HAVING sum(v) > 8", NOTE, RIGHT),
        ("update mode", {MODE: "update"}, NOTE, RIGHT),
        (
            "key of another column",
            " k, sum(v) AS s FROM orders GROUP BY window(at, '10 minutes'), k=> g, sum(v) AS s FROM orders GROUP BY window(at, '10 minutes'), g",
            WRONG,
            FALSE,
        ),
        ("filter below", "FROM orders=>FROM orders WHERE v > 4", WRONG, FALSE),
    ],
    "sessions": [
        ("longer gap", "5 minutes=>8 minutes", WRONG, FALSE),
        ("count to sum", "count(*)=>sum(v)", AFRESH, REFUSED),
        (
            "key removed",
            {
                SQL: "SELECT session_window.start AS since, count(*) AS n FROM orders GROUP BY session_window(at, '5 minutes')"
            },
            AFRESH,
            REFUSED,
        ),
        (
            "tumbling window",
            {
                SQL: "SELECT window.start AS since, k, count(*) AS n FROM orders GROUP BY window(at, '5 minutes'), k"
            },
            WRONG,
            "",
        ),
        ("longer delay", {DELAY: "15 minutes"}, NOTE, RIGHT),
    ],
    "distinct": [
        ("key added", "k, g=>k, g, v", AFRESH, REFUSED),
        ("key removed", "k, g=>k", AFRESH, REFUSED),
        ("keys in another order", "k, g=>g, k", WRONG, FALSE),
        ("key renamed", "k, g=>k, g AS h", NOTE, RIGHT),
        ("filter below", "FROM orders=>FROM orders WHERE v > 2", WRONG, ""),
        ("grouped instead", {SQL: "SELECT k, g FROM orders GROUP BY k, g"}, OK, RIGHT),
        ("counted", {SQL: "SELECT k, g, count(*) AS n FROM orders GROUP BY k, g"}, AFRESH, REFUSED),
    ],
    "unrepeated": [
        ("another column of one type", {f"{ORDERS}/drop_duplicates_within_watermark": ["k"]}, WRONG, FALSE),
        ("one column more", {f"{ORDERS}/drop_duplicates_within_watermark": ["id", "v"]}, AFRESH, REFUSED),
        ("column of another type", {f"{ORDERS}/drop_duplicates_within_watermark": ["v"]}, AFRESH, REFUSED),
        ("no deduplication", {f"{ORDERS}/drop_duplicates_within_watermark": []}, AFRESH, ""),
        ("longer delay", {DELAY: "30 minutes"}, NOTE, RIGHT),
        ("filter above", "FROM orders=>FROM orders WHERE v > 2", NOTE, RIGHT),
        ("one column less for the sink", "id, k, v=>id, k", NOTE, RIGHT),
        ("watermark of another time", {f"{ORDERS}/watermark/event_time": "at2"}, WRONG, ""),
    ],
    "pairs": [
        ("wider bound", "10 MINUTES=>20 MINUTES", WRONG, FALSE),
        ("narrower bound", "10 MINUTES=>5 MINUTES", WRONG, ""),
        ("stricter condition", "ON o.id=>ON p.v > o.v AND o.id", NOTE, ""),
        ("key added", "ON o.id = p.id=>ON o.id = p.id AND o.k = p.k", AFRESH, REFUSED),
        ("another key of one type", "ON o.id = p.id=>ON o.k = p.k", AFRESH, ""),
        ("left", "JOIN=>LEFT JOIN", AFRESH, REFUSED),
        ("right", "JOIN=>RIGHT JOIN", AFRESH, REFUSED),
        (
            "semi",
            {
                SQL: "SELECT o.id, o.v FROM orders o LEFT SEMI JOIN pays p ON o.id = p.id AND p.at >= o.at AND p.at <= o.at + INTERVAL 10 MINUTES"
            },
            AFRESH,
            "",
        ),
        ("one column less above", "o.v, p.v AS paid=>p.v AS paid", AFRESH, REFUSED),
        ("one column more above", "o.v, p=>o.v, o.w, p", AFRESH, REFUSED),
        ("another column above", "o.v, p=>o.w AS v, p", WRONG, FALSE),
        ("result renamed", "AS paid=>AS price", NOTE, RIGHT),
        ("filter on a side", "10 MINUTES=>10 MINUTES WHERE o.v > 3", WRONG, ""),
        ("longer delay", {DELAY: "30 minutes"}, NOTE, ""),
        (
            "sides swapped",
            {
                SQL: "SELECT o.id, o.v, p.v AS paid FROM pays p JOIN orders o ON o.id = p.id AND p.at >= o.at AND p.at <= o.at + INTERVAL 10 MINUTES"
            },
            WRONG,
            REFUSED,
        ),
        (
            "join with a stream less",
            {SQL: "SELECT id, v, v AS paid FROM orders", PAYS: DELETE},
            AFRESH,
            REFUSED,
        ),
        ("update mode", {MODE: "update"}, NOTE, RIGHT),
    ],
    "left": [
        ("inner", "LEFT JOIN=>JOIN", NOTE, RIGHT),
        ("right", "LEFT JOIN=>RIGHT JOIN", WRONG, ""),
        ("full", "LEFT JOIN=>FULL JOIN", WRONG, ""),
        ("wider bound", "10 MINUTES=>20 MINUTES", WRONG, ""),
        ("one column less above", "o.v, p.v AS paid=>p.v AS paid", AFRESH, REFUSED),
        ("filter above", "10 MINUTES=>10 MINUTES WHERE p.v IS NULL", NOTE, RIGHT),
    ],
    "union": [
        (
            "sources swapped",
            {SQL: "SELECT id, k, v FROM pays UNION ALL SELECT id, k, v FROM orders"},
            WRONG,
            REFUSED,
        ),
        ("source removed", {SQL: "SELECT id, k, v FROM orders", PAYS: DELETE}, AFRESH, REFUSED),
        (
            "other column of a side",
            "SELECT id, k, v FROM pays=>SELECT id, k, v * 2 AS v FROM pays",
            NOTE,
            RIGHT,
        ),
        ("filter of a side", "FROM pays=>FROM pays WHERE v > 30", NOTE, RIGHT),
        (
            "aggregation on top",
            {
                SQL: "SELECT k, sum(v) AS s FROM (SELECT id, k, v FROM orders UNION ALL SELECT id, k, v FROM pays) GROUP BY k",
                MODE: "update",
            },
            AFRESH,
            REFUSED,
        ),
        (
            "join instead",
            {SQL: "SELECT o.id, o.k, p.v FROM orders o JOIN pays p ON o.id = p.id"},
            AFRESH,
            REFUSED,
        ),
        (
            "one source twice",
            {SQL: "SELECT id, k, v FROM orders UNION ALL SELECT id, k, v FROM orders", PAYS: DELETE},
            AFRESH,
            "",
        ),
    ],
}

# What a run found, where the tables leave the outcome open or the input does not show it.
_FOUND: dict[str, tuple[str, str]] = {
    "totals: having on the key": (WRONG, RIGHT),
    "totals: watermark": (NOTE, RIGHT),
    "totals: another aggregation on top": (AFRESH, REFUSED),
    "windows: shorter delay": (NOTE, RIGHT),
    "windows: watermark of another time": (WRONG, RIGHT),
    "windows: complete mode": (WRONG, FALSE),
    "windows: session window": (AFRESH, REFUSED),
    "windows: filter below": (WRONG, RIGHT),
    "sessions: tumbling window": (AFRESH, REFUSED),
    "distinct: keys in another order": (WRONG, RIGHT),
    "distinct: filter below": (WRONG, RIGHT),
    "unrepeated: no deduplication": (AFRESH, REFUSED),
    "pairs: narrower bound": (WRONG, RIGHT),
    "pairs: stricter condition": (NOTE, RIGHT),
    "pairs: another key of one type": (AFRESH, REFUSED),
    "pairs: semi": (AFRESH, REFUSED),
    "pairs: filter on a side": (WRONG, RIGHT),
    "pairs: longer delay": (NOTE, RIGHT),
    "pairs: sides swapped": (WRONG, FALSE),
    "left: right": (AFRESH, REFUSED),
    "left: full": (AFRESH, REFUSED),
    "left: wider bound": (WRONG, FALSE),
    "union: one source twice": (AFRESH, RIGHT),
    "unrepeated: watermark of another time": (WRONG, RIGHT),
    "rows: RocksDB": (OK, RIGHT),
    "totals: more files a batch": (OK, RIGHT),
    "closed: more files a batch": (OK, RIGHT),
    "totals: another time zone": (WRONG, RIGHT),
    "closed: another time zone": (WRONG, FALSE),
    "totals: RocksDB": (OK, RIGHT),
    "closed: RocksDB": (OK, RIGHT),
}
# Refused, although the rows are right with this input: it has no group or pair that shows the difference.
RIGHT_WITH_THIS_INPUT = {
    name for name, (verdict, outcome) in _FOUND.items() if outcome == RIGHT and verdict in (WRONG, AFRESH)
}

_STATELESS = ("rows", "union")


def _edits() -> list[Edit]:
    """Every change of the tables; the changes of any query are made to three bases."""
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
