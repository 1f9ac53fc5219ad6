"""Changes of queries without state, with a union, and with a deduplication."""

from __future__ import annotations

from edit_words import (
    AFRESH,
    DELAY,
    DELETE,
    FALSE,
    MODE,
    NOTE,
    OK,
    ORDERS,
    PAYS,
    REFUSED,
    RIGHT,
    SQL,
    WRONG,
    ZONE,
    Row,
)

ROWS: dict[str, list[Row]] = {
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
        (
            "union with itself",
            "v > 1=>v > 1 UNION ALL SELECT id, k, v, v + w AS t FROM orders",
            AFRESH,
            REFUSED,
        ),
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
    "unrepeated": [
        ("another time zone", {ZONE: "Asia/Tokyo"}, WRONG, FALSE),
        ("another column of one type", {f"{ORDERS}/drop_duplicates_within_watermark": ["k"]}, WRONG, FALSE),
        ("one column more", {f"{ORDERS}/drop_duplicates_within_watermark": ["id", "v"]}, AFRESH, REFUSED),
        ("column of another type", {f"{ORDERS}/drop_duplicates_within_watermark": ["v"]}, AFRESH, REFUSED),
        ("no deduplication", {f"{ORDERS}/drop_duplicates_within_watermark": []}, AFRESH, ""),
        ("longer delay", {DELAY: "30 minutes"}, WRONG, RIGHT),
        ("filter above", "FROM orders=>FROM orders WHERE v > 2", NOTE, RIGHT),
        ("one column less for the sink", "id, k, v=>id, k", NOTE, RIGHT),
        ("watermark of another time", {f"{ORDERS}/watermark/event_time": "at2"}, WRONG, ""),
    ],
}
