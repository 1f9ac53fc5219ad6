"""Changes of sources of Kafka and Delta."""

from __future__ import annotations

from edit_words import AFRESH, DELETE, FALSE, NOTE, OK, ORDERS, PAYS, REFUSED, RIGHT, SQL, WRONG, Row

_FILES = {
    "json": {"path": "$IN/files"},
    "schema": {"id": "string", "k": "string", "v": "bigint", "w": "bigint"},
}
_SWAPPED = {SQL: "SELECT id, k, v FROM pays UNION ALL SELECT id, k, v FROM orders"}

SOURCES: dict[str, list[Row]] = {
    "delta": [
        ("nothing", {}, OK, RIGHT),
        ("more files a batch", {f"{ORDERS}/delta/max_files_per_trigger": 1000}, OK, RIGHT),
        ("starting version", {f"{ORDERS}/delta/starting_version": 0}, NOTE, RIGHT),
        ("commits with changes skipped", {f"{ORDERS}/delta/skip_change_commits": True}, OK, RIGHT),
        ("another table", {f"{ORDERS}/delta/path": "$IN/pays"}, WRONG, REFUSED),
        ("files instead", {ORDERS: _FILES}, AFRESH, REFUSED),
        ("filter below", "FROM orders=>FROM orders WHERE v > 4", WRONG, FALSE),
        ("filter on the key", "GROUP BY k=>GROUP BY k HAVING k = 'a'", NOTE, RIGHT),
    ],
    "kafka": [
        ("nothing", {}, OK, RIGHT),
        ("more records a batch", {f"{ORDERS}/kafka/max_offsets_per_trigger": 1000}, OK, RIGHT),
        ("starting offsets", {f"{ORDERS}/kafka/starting_offsets": "latest"}, NOTE, RIGHT),
        ("consumer group", {f"{ORDERS}/kafka/group_id": "readers-$NUMBER"}, NOTE, RIGHT),
        ("lost records accepted", {f"{ORDERS}/kafka/fail_on_data_loss": False}, NOTE, RIGHT),
        ("one topic more", {f"{ORDERS}/kafka/subscribe": ["orders-$NUMBER", "pays-$NUMBER"]}, NOTE, RIGHT),
        ("another topic", {f"{ORDERS}/kafka/subscribe": "pays-$NUMBER"}, WRONG, REFUSED),
        (
            "a pattern that the topic matches",
            {f"{ORDERS}/kafka": {"bootstrap_servers": "$KAFKA", "subscribe_pattern": "orders-$NUMBER(-.*)?"}},
            NOTE,
            RIGHT,
        ),
        ("files instead", {ORDERS: _FILES}, AFRESH, REFUSED),
        ("one column more", "id, k, v=>id, k, v, w", NOTE, RIGHT),
        ("a column of the source that nothing reads", {f"{ORDERS}/schema/x": "string"}, NOTE, RIGHT),
    ],
    "topics": [
        ("nothing", {}, OK, RIGHT),
        ("sources swapped", _SWAPPED, WRONG, REFUSED),
        (
            "sources swapped, lost records accepted",
            {
                **_SWAPPED,
                f"{ORDERS}/kafka/fail_on_data_loss": False,
                f"{PAYS}/kafka/fail_on_data_loss": False,
            },
            WRONG,
            FALSE,
        ),
        ("source removed", {SQL: "SELECT id, k, v FROM orders", PAYS: DELETE}, AFRESH, REFUSED),
        ("filter of a side", "FROM pays=>FROM pays WHERE v > 30", NOTE, RIGHT),
    ],
}
