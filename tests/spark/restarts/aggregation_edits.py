"""Changes of queries with an aggregation."""

from __future__ import annotations

from edit_words import (
    AFRESH,
    DELAY,
    DELETE,
    FALSE,
    MIN_MAX,
    MODE,
    NOTE,
    OK,
    ORDERS,
    REFUSED,
    RIGHT,
    SQL,
    WRONG,
    Row,
)

AGGREGATIONS: dict[str, list[Row]] = {
    "totals": [
        ("sum to max", "sum(v)=>max(v)", WRONG, FALSE),
        ("sum to min", "sum(v)=>min(v)", WRONG, FALSE),
        ("sum to count", "sum(v)=>count(v)", WRONG, FALSE),
        ("count to sum", "count(*)=>sum(1)", AFRESH, REFUSED),
        ("sum of another column", "sum(v)=>sum(w)", WRONG, FALSE),
        ("sum of an expression", "sum(v)=>sum(v * 2)", WRONG, FALSE),
        ("result of a sum", "sum(v) AS s=>sum(v) * 2 AS s", NOTE, RIGHT),
        ("sum with a filter", "sum(v)=>sum(v) FILTER (WHERE v > 3)", WRONG, FALSE),
        ("min and max swapped", f"{MIN_MAX}=>max(w) AS hi, min(w) AS lo", WRONG, FALSE),
        ("names of min and max swapped", f"{MIN_MAX}=>min(w) AS hi, max(w) AS lo", NOTE, RIGHT),
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
}
