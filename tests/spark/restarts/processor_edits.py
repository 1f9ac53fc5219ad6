"""Changes of Python code: processors with values, lists, maps and timers, and functions below state."""

from __future__ import annotations

from edit_words import AFRESH, CANNOT, DELETE, FALSE, NOTE, OK, REFUSED, RIGHT, WRONG, Row

CODE, RESULT = "code/orders_code", "views/result"
TOTAL, SEEN, GROUPS = f"{RESULT}/state/total", f"{RESULT}/state/seen", f"{RESULT}/state/groups"

PROCESSORS: dict[str, list[Row]] = {
    "processor": [
        ("nothing", {}, OK, RIGHT),
        ("a comment", {CODE: "number += 1=>number += 1  # an order more"}, OK, RIGHT),
        (
            "the same in other code",
            {
                CODE: "number, total = self.total.get() or (0, 0)=>number, total = self.total.get() or (0, 0,)[:2]"
            },
            CANNOT,
            RIGHT,
        ),
        ("result of the same state", {CODE: "n=number,=>n=number * 10,"}, CANNOT, RIGHT),
        ("another number stored", {CODE: "number += 1=>number += 2"}, CANNOT, FALSE),
        (
            "a list is replaced",
            {CODE: "self.seen.appendValue((row.v,))=>self.seen.put([(row.v,)])"},
            CANNOT,
            RIGHT,
        ),
        ("another timer", {CODE: "1767270600000=>1767271200000"}, CANNOT, FALSE),
        ("type of a value", {f"{TOTAL}/value/n": "int"}, AFRESH, REFUSED),
        ("type of a list", {f"{SEEN}/list/v": "string"}, AFRESH, REFUSED),
        ("type of a map's key", {f"{GROUPS}/map/key/g": "bigint"}, AFRESH, REFUSED),
        ("list to map", {SEEN: {"map": {"key": {"v": "bigint"}, "value": {"v": "bigint"}}}}, AFRESH, REFUSED),
        (
            "variable renamed",
            {SEEN: DELETE, f"{RESULT}/state/met": {"list": {"v": "bigint"}}, CODE: "self.seen.=>self.met."},
            CANNOT,
            FALSE,
        ),
        (
            "variable added",
            {
                f"{RESULT}/state/last": {"value": {"v": "bigint"}},
                CODE: "total += row.v=>total += row.v\n            self.last.update((row.v,))",
            },
            CANNOT,
            RIGHT,
        ),
        ("key of another column", {f"{RESULT}/group_by": ["g"]}, WRONG, FALSE),
        ("key of another type", {f"{RESULT}/group_by": ["v"]}, AFRESH, REFUSED),
        ("filter below", {f"{RESULT}/from": "large"}, WRONG, FALSE),
        (
            "no timers",
            {f"{RESULT}/time_mode": "none", CODE: "self.handle.registerTimer=>str"},
            AFRESH,
            REFUSED,
        ),
    ],
    "older": [
        ("nothing", {}, OK, RIGHT),
        ("another number stored", {CODE: "number += len(frame)=>number += 2 * len(frame)"}, CANNOT, FALSE),
        ("type of a value", {f"{RESULT}/state/n": "int"}, AFRESH, REFUSED),
        ("one value more", {f"{RESULT}/state/m": "bigint"}, AFRESH, REFUSED),
    ],
    "function": [
        ("nothing", {}, OK, RIGHT),
        ("a comment", {CODE: "return value + 1=>return value + 1  # one more"}, OK, RIGHT),
        ("the same in other code", {CODE: "return value + 1=>return 1 + value"}, CANNOT, RIGHT),
        ("another result", {CODE: "return value + 1=>return value + 2"}, CANNOT, FALSE),
    ],
    "plain_function": [
        ("another result", {CODE: "return value + 1=>return value + 2"}, NOTE, RIGHT),
    ],
}
