"""Changes of queries with a stream-stream join."""

from __future__ import annotations

from edit_words import AFRESH, DELAY, DELETE, FALSE, MODE, NOTE, PAYS, REFUSED, RIGHT, SQL, WRONG, Row

JOINS: dict[str, list[Row]] = {
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
    "semi": [
        ("inner", "LEFT SEMI JOIN=>JOIN", WRONG, ""),
        ("left", "LEFT SEMI JOIN=>LEFT JOIN", AFRESH, REFUSED),
    ],
}
