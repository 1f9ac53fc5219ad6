"""The pipelines that are changed, and their input."""

from __future__ import annotations

from typing import Any

from code_bases import make_code_bases

Spec = dict[str, Any]


def _at(minute: int) -> str:
    return f"2026-01-01 {12 + minute // 60}:{minute % 60:02}:00"


def _order(number: int, minute: int, key: str, value: int, weight: int) -> dict[str, Any]:
    return {
        "id": f"i{number}",
        "k": key,
        "g": key.lower() + "g",
        "v": value,
        "w": weight,
        "at": _at(minute),
        "at2": _at(minute + 7),
    }


def _pay(number: int, minute: int, value: int) -> dict[str, Any]:
    return {
        "id": f"i{number}",
        "k": "a" if number % 2 else "b",
        "v": value,
        "w": value * 3,
        "at": _at(minute),
    }


# Minutes after 12:00. Groups are open between the halves, some windows close in the second half.
FILES: dict[str, tuple[list[Any], list[Any]]] = {
    "orders": (
        [
            [
                _order(30, -5, "b", 4, 4),
                _order(1, 1, "a", 5, 2),
                _order(2, 3, "A", 7, 1),
                _order(3, 8, "b", 2, 9),
                _order(4, 12, "a", 4, 3),
            ],
            [_order(5, 14, "b", 9, 4), _order(6, 16, "B", 1, 8), _order(7, 18, "a", 6, 6)],
        ],
        [
            [
                _order(5, 17, "b", 9, 4),
                _order(8, 19, "a", 3, 7),
                _order(9, 13, "A", 8, 5),
                _order(10, 16, "b", 6, 1),
            ],
            [_order(11, 44, "a", 2, 2), _order(12, 47, "b", 10, 11), _order(8, 19, "a", 3, 7)],
        ],
    ),
    "pays": (
        [[_pay(1, 2, 50), _pay(3, 9, 20)], [_pay(5, 15, 90), _pay(20, 17, 1)]],
        [
            [_pay(7, 19, 60), _pay(30, 10, 44), _pay(4, 21, 40), _pay(2, 14, 70), _pay(10, 18, 61)],
            [_pay(11, 45, 20), _pay(12, 48, 30)],
        ],
    ),
}

# Rows that show the difference where those above do not.
OTHER_FILES: dict[str, tuple[list[Any], list[Any]]] = {
    "orders": (
        [
            [
                _order(30, -5, "b", 4, 4),
                _order(1, 1, "a", 5, 2),
                _order(3, 8, "b", 2, 9),
                _order(21, 12, "c", 3, 3),
            ],
            [_order(6, 18, "a", 6, 6)],
        ],
        [
            # A row of a window that is closed, one of a group with a small value before, and a later time.
            [_order(22, -4, "b", 9, 1), _order(23, 15, "c", 8, 2), _order(24, 29, "a", 7, 7)],
            [_order(25, 30, "a", 6, 5)],
            # Repeated after ten minutes by one event time, and before that by the other.
            [_order(21, 34, "c", 3, 3)],
            # Repeated after the shorter of two delays and before the longer one.
            [_order(26, 54, "a", 1, 1)],
            [_order(27, 55, "a", 1, 1)],
            [_order(21, 56, "c", 3, 3)],
        ],
    ),
    "pays": ([[_pay(1, 2, 50), _pay(9, 15, 20)]], [[_pay(3, 16, 44), _pay(1, 10, 6)], [_pay(24, 31, 5)]]),
}

_COLUMNS = {
    "id": "string",
    "k": "string",
    "g": "string",
    "v": "bigint",
    "w": "bigint",
    "at": "timestamp",
    "at2": "timestamp",
}
_PAYS = {"id": "string", "k": "string", "v": "bigint", "w": "bigint", "at": "timestamp"}
MARK = {"event_time": "at", "delay_threshold": "10 minutes"}


def _source(name: str, columns: dict[str, str], watermark: bool = True) -> Spec:
    entry: Spec = {"json": {"path": f"$IN/{name}", "max_files_per_trigger": 1}, "schema": dict(columns)}
    return {**entry, "watermark": dict(MARK)} if watermark else entry


def _base(sql: str, mode: str, sources: Spec) -> Spec:
    return {
        "name": "p",
        "sources": sources,
        "views": {"result": {"sql": sql}},
        "queries": {"out": {"from": "result", "output_mode": mode, "to": [{"console": {}}]}},
    }


_ONE = {"orders": _source("orders", _COLUMNS)}
_PLAIN = {"orders": _source("orders", _COLUMNS, watermark=False)}
_TWO = {"orders": _source("orders", _COLUMNS), "pays": _source("pays", _PAYS)}

BASES: dict[str, Spec] = {
    "rows": _base("SELECT id, k, v, v + w AS t FROM orders WHERE v > 1", "append", _PLAIN),
    "totals": _base(
        "SELECT k, sum(v) AS s, min(w) AS lo, max(w) AS hi, count(*) AS n FROM orders GROUP BY k",
        "update",
        _PLAIN,
    ),
    "windows": _base(
        "SELECT window.start AS since, k, sum(v) AS s FROM orders GROUP BY window(at, '10 minutes'), k",
        "update",
        _ONE,
    ),
    "closed": _base(
        "SELECT window.start AS since, k, sum(v) AS s FROM orders GROUP BY window(at, '10 minutes'), k",
        "append",
        _ONE,
    ),
    "sessions": _base(
        "SELECT session_window.start AS since, k, count(*) AS n FROM orders "
        "GROUP BY session_window(at, '5 minutes'), k",
        "append",
        _ONE,
    ),
    "distinct": _base("SELECT DISTINCT k, g FROM orders", "update", _PLAIN),
    "unrepeated": {
        **_base("SELECT id, k, v FROM orders", "append", _ONE),
        "sources": {"orders": {**_source("orders", _COLUMNS), "drop_duplicates_within_watermark": ["id"]}},
    },
    "pairs": _base(
        "SELECT o.id, o.v, p.v AS paid FROM orders o JOIN pays p ON o.id = p.id AND p.at >= o.at "
        "AND p.at <= o.at + INTERVAL 10 MINUTES",
        "append",
        _TWO,
    ),
    "left": _base(
        "SELECT o.id, o.v, p.v AS paid FROM orders o LEFT JOIN pays p ON o.id = p.id AND p.at >= o.at "
        "AND p.at <= o.at + INTERVAL 10 MINUTES",
        "append",
        _TWO,
    ),
    "semi": _base(
        "SELECT o.id, o.v FROM orders o LEFT SEMI JOIN pays p ON o.id = p.id AND p.at >= o.at "
        "AND p.at <= o.at + INTERVAL 10 MINUTES",
        "append",
        _TWO,
    ),
    "union": _base(
        "SELECT id, k, v FROM orders UNION ALL SELECT id, k, v FROM pays",
        "append",
        {
            "orders": _source("orders", _COLUMNS, watermark=False),
            "pays": _source("pays", _PAYS, watermark=False),
        },
    ),
}


def _read_by(kind: Spec, columns: dict[str, str] | None = None) -> Spec:
    return {**kind, "schema": dict(columns)} if columns else dict(kind)


_DELTA = {"delta": {"path": "$IN/orders", "max_files_per_trigger": 1}}
_TOPICS = {
    name: _read_by({"kafka": {"bootstrap_servers": "$KAFKA", "subscribe": f"{name}-$NUMBER"}}, columns)
    for name, columns in (("orders", _COLUMNS), ("pays", _PAYS))
}
BASES |= {
    "delta": _base("SELECT k, sum(v) AS s FROM orders GROUP BY k", "update", {"orders": _DELTA}),
    "kafka": _base("SELECT id, k, v FROM orders WHERE v > 1", "append", {"orders": _TOPICS["orders"]}),
    "topics": _base(
        "SELECT id, k, v FROM orders UNION ALL SELECT id, k, v FROM pays", "append", dict(_TOPICS)
    ),
    **make_code_bases(_ONE["orders"], _PLAIN["orders"]),
}
