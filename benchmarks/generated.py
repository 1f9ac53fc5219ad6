"""Specs of any size, made up: for measuring how a check grows."""

from __future__ import annotations

SOURCE = """  {name}:
    kafka: {{bootstrap_servers: "localhost:9092", subscribe: {name}}}
    schema: {{id: string, user: string, amount: double, ts: timestamp}}
    watermark: {{event_time: ts, delay_threshold: 10 minutes}}
"""

# What queries are made of in turn: a window, a join of streams, a deduplication, a lookup, a filter.
SHAPES = (
    "SELECT window(ts, '{n} minutes') AS w, user, count(*) AS rows, max(amount) AS most\n"
    "    FROM orders GROUP BY window(ts, '{n} minutes'), user",
    "SELECT o.id, o.user, p.amount, o.ts\n"
    "    FROM orders AS o JOIN payments AS p ON o.id = p.id\n"
    "    AND p.ts BETWEEN o.ts AND o.ts + INTERVAL {n} MINUTES",
    "SELECT session_window(ts, '{n} minutes') AS w, user, count(*) AS rows\n"
    "    FROM payments GROUP BY session_window(ts, '{n} minutes'), user",
    "WITH big AS (SELECT * FROM orders WHERE amount > {n})\n"
    "    SELECT id, upper(user) AS user, try_divide(amount, {n}) AS part, ts FROM big",
    "SELECT id, user, amount, ts FROM orders WHERE amount > {n}\n"
    "    UNION ALL SELECT id, user, amount, ts FROM payments WHERE amount < {n}",
)


def queries(count: int) -> str:
    """A spec of so many queries, each with a view of its own, over two sources."""
    out = [
        "name: generated\nsources:\n",
        SOURCE.format(name="orders"),
        SOURCE.format(name="payments"),
        "views:\n",
    ]
    out += [f"  q{n}: |\n    {SHAPES[n % len(SHAPES)].format(n=n + 1)}\n" for n in range(count)]
    out.append("queries:\n")
    out += [f"  q{n}: {{to: {{delta: lake/q{n}}}}}\n" for n in range(count)]
    return "".join(out)


def views(count: int, ends: int = 5) -> str:
    """A spec of so many views in `ends` chains, each of which a query writes."""
    out = ["name: generated\nsources:\n", SOURCE.format(name="orders"), "views:\n"]
    for n in range(count):
        below = f"v{n - ends}" if n >= ends else "orders"
        out.append(
            f"  v{n}: |\n    SELECT id, user, amount * {n + 1} AS amount, ts\n"
            f"    FROM {below}\n    WHERE amount > {n} AND user IS NOT NULL\n"
        )
    out.append("queries:\n")
    out += [f"  q{n}: {{from: v{count - ends + n}, to: {{delta: lake/q{n}}}}}\n" for n in range(ends)]
    return "".join(out)
