"""Pipelines with Python code that are changed: processors, and functions with and without state above."""

from __future__ import annotations

from typing import Any

PROCESSOR = '''
from pyspark.sql import Row


class Count:
    """Number and sum of a key's orders, their values, their groups; a timer at half past twelve."""

    def handleInputRows(self, key, rows, timers):
        number, total = self.total.get() or (0, 0)
        for row in rows:
            number += 1
            total += row.v
            self.seen.appendValue((row.v,))
            before = self.groups.getValue((row.g,))
            self.groups.updateValue((row.g,), ((before[0] if before else 0) + 1,))
        self.total.update((number, total))
        self.handle.registerTimer(1767270600000)
        yield Row(
            k=str(key[0]),
            n=number,
            s=total,
            seen=len(list(self.seen.get())),
            groups=len(list(self.groups.keys())),
        )

    def handleExpiredTimer(self, key, timers, expired):
        number, total = self.total.get() or (0, 0)
        yield Row(k=str(key[0]), n=-number, s=total, seen=0, groups=0)
'''
OLDER = """
import pandas as pd


def count(key, frames, state):
    number = state.get[0] if state.exists else 0
    for frame in frames:
        number += len(frame)
    state.update((number,) * len(state._value_schema.fields))
    yield pd.DataFrame({"k": [key[0]], "n": [number]})
"""
FUNCTION = """
from pyspark.sql import functions as F


@F.udf("bigint")
def change(value):
    return value + 1


def changed(orders):
    return orders.withColumn("v", change("v"))
"""
_ROCKSDB = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    )
}


def make_code_bases(watermarked: dict[str, Any], plain: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the pipelines over one source, with and without a watermark. `code` are Python files next to them."""
    out = {"from": "result", "output_mode": "update", "to": [{"console": {}}]}
    return {
        "processor": {
            "name": "p",
            "spark": dict(_ROCKSDB),
            "code": {"orders_code": PROCESSOR},
            "sources": {"orders": watermarked},
            "views": {
                "large": {"sql": "SELECT * FROM orders WHERE v > 4"},
                "result": {
                    "transform_with_state": "orders_code:Count",
                    "from": "orders",
                    "group_by": ["k"],
                    "rows": "row",
                    "schema": {
                        "k": "string",
                        "n": "bigint",
                        "s": "bigint",
                        "seen": "bigint",
                        "groups": "bigint",
                    },
                    "state": {
                        "total": {"value": {"n": "bigint", "s": "bigint"}},
                        "seen": {"list": {"v": "bigint"}},
                        "groups": {"map": {"key": {"g": "string"}, "value": {"n": "bigint"}}},
                    },
                    "time_mode": "event_time",
                    "output_mode": "update",
                },
            },
            "queries": {"out": out},
        },
        "older": {
            "name": "p",
            "code": {"orders_code": OLDER},
            "sources": {"orders": plain},
            "views": {
                "result": {
                    "apply_in_pandas_with_state": "orders_code:count",
                    "from": "orders",
                    "group_by": ["k"],
                    "schema": {"k": "string", "n": "bigint"},
                    "state": {"n": "bigint"},
                    "output_mode": "update",
                }
            },
            "queries": {"out": out},
        },
        "function": {
            "name": "p",
            "code": {"orders_code": FUNCTION},
            "sources": {"orders": plain},
            "views": {
                "changed": {"python": "orders_code:changed"},
                "result": {"sql": "SELECT k, sum(v) AS s FROM changed GROUP BY k"},
            },
            "queries": {"out": out},
        },
        "plain_function": {
            "name": "p",
            "code": {"orders_code": FUNCTION},
            "sources": {"orders": plain},
            "views": {
                "changed": {"python": "orders_code:changed"},
                "result": {"sql": "SELECT id, k, v FROM changed"},
            },
            "queries": {"out": {**out, "output_mode": "append"}},
        },
    }
