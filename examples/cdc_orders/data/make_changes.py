"""Changes of a table of orders, as Debezium would send them: `python data/make_changes.py --rows 2000`.

A shop takes orders, is paid, ships, and deletes what was cancelled. Each change has its place in the database's
log (`source.lsn`), which grows by one from change to change. They are sent out of order, by up to 50 places; some
are sent twice, and some are broken on the way. The same --rows and --seed give the same bytes in the same order.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

TOPIC = "shop.public.orders"
BEGIN = 1_767_258_000_000  # 2026-01-01T09:00:00Z, in milliseconds
NEXT = {"placed": "paid", "paid": "shipped", "shipped": "delivered"}
SHUFFLED, TWICE, BROKEN = 50, 0.03, 0.005


def changes(rows: int, seed: int) -> Iterator[dict[str, Any]]:
    """Envelopes in the order of the log."""
    draw = random.Random(seed)
    there: dict[int, dict[str, Any]] = {}
    for lsn in range(1, rows + 1):
        open_ = [order for order in there.values() if order["status"] in NEXT][-200:]
        before, after, op = None, None, "c"
        if open_ and draw.random() < 0.7:
            before = draw.choice(open_)
            if before["status"] == "placed" and draw.random() < 0.2:
                op = "d"
            else:
                op, after = "u", {**before, "status": NEXT[before["status"]]}
        else:
            number = 1000 + lsn
            amount = draw.randrange(500, 20_000) / 100
            after = {
                "order_id": number,
                "customer": f"u{draw.randrange(300):03}",
                "status": "placed",
                "amount": amount,
            }
        if after is None and before is not None:
            del there[before["order_id"]]
        elif after is not None:
            there[after["order_id"]] = after
        yield {
            "before": before,
            "after": after,
            "op": op,
            "ts_ms": BEGIN + lsn * 1500,
            "source": {"lsn": lsn},
        }


def sent(rows: int, seed: int) -> Iterator[tuple[bytes, bytes]]:
    """Keys and values as they go out: out of order, some twice, some broken."""
    draw = random.Random(seed + 1)
    out = []
    for number, change in enumerate(changes(rows, seed)):
        key = (change["after"] or change["before"])["order_id"]
        value = json.dumps(change).encode()
        out.append((number + draw.uniform(0, SHUFFLED), str(key).encode(), value))
        if draw.random() < TWICE:
            out.append((number + draw.uniform(0, 10 * SHUFFLED), str(key).encode(), value))
        if draw.random() < BROKEN:
            out.append((number + draw.uniform(0, SHUFFLED), str(key).encode(), value[: len(value) // 2]))
    for _, name, value in sorted(out):
        yield name, value


def brokers() -> str:
    """Those of KAFKA, else the local stack's, which is started if it is not up."""
    if "KAFKA" in os.environ:
        return os.environ["KAFKA"]
    told = subprocess.run(["millstream", "up", "--detach", "--json"], stdout=subprocess.PIPE, check=True)
    return str(json.loads(told.stdout)["kafka"])


def main() -> None:
    """Send them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=2000, help="number of changes")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--print", action="store_true", help="print the values instead")
    given = parser.parse_args()
    records = list(sent(given.rows, given.seed))
    if given.print:
        sys.stdout.buffer.writelines(value + b"\n" for _, value in records)
        return
    from confluent_kafka import Producer  # noqa: PLC0415 - printing needs no client

    producer = Producer({"bootstrap.servers": brokers(), "enable.idempotence": True, "linger.ms": 50})
    for key, value in records:
        producer.produce(TOPIC, value=value, key=key)
        producer.poll(0)
    if left := producer.flush(60):
        sys.exit(f"{left} records were not taken within a minute")
    sys.stdout.write(f"{len(records)} records sent to {TOPIC}\n")


if __name__ == "__main__":
    main()
