"""Write files of generated order events into data/order_events: the same options give the same bytes.

A file is an hour. An order is placed, most are paid and shipped, some are cancelled. A few events come twice, a few
come three hours late.
"""

from __future__ import annotations

import argparse
import json
import os
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "order_events"
START = datetime(2026, 1, 1, 9, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)
LATE = timedelta(hours=3)
NEXT = {"placed": ("paid", "paid", "paid", "cancelled"), "paid": ("shipped",)}


def main() -> None:
    """Replace the files in data/order_events."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=8)
    parser.add_argument("--orders", type=int, default=25, help="placed in an hour")
    parser.add_argument("--seed", type=int, default=61)
    asked = parser.parse_args()
    draw = random.Random(asked.seed)
    FOLDER.mkdir(exist_ok=True)
    for old in FOLDER.glob("part-*.json"):
        old.unlink()
    standing: dict[str, dict[str, Any]] = {}
    repeated: list[str] = []
    number = 0
    for part in range(asked.files):
        begin = START + part * HOUR
        lines = []
        # An order has one event an hour at most: a file has each order once.
        for order_id, order in list(standing.items()):
            if order["status"] in NEXT and draw.random() < 0.6:
                order["status"] = draw.choice(NEXT[order["status"]])
                lines.append(event(order_id, order, begin + draw.random() * HOUR, draw, part))
        for _ in range(asked.orders):
            number += 1
            order_id = f"o{number:06}"
            standing[order_id] = {"status": "placed", "amount": round(draw.uniform(5, 250), 2)}
            lines.append(event(order_id, standing[order_id], begin + draw.random() * HOUR, draw, part))
        file = FOLDER / f"part-{part:03}.json"
        # Whole or not at all: a stream reads a file when its name appears.
        aside = file.with_suffix(".tmp")
        changed = {json.loads(line)["order_id"] for line in lines}
        again = [line for line in repeated if json.loads(line)["order_id"] not in changed]
        aside.write_text("".join(f"{line}\n" for line in [*lines, *again]), encoding="utf-8")
        repeated = [draw.choice(lines)]
        # Spark reads files in the order of their times.
        os.utime(aside, (START.timestamp() + part, START.timestamp() + part))
        aside.rename(file)


def event(order_id: str, order: dict[str, Any], at: datetime, draw: random.Random, part: int) -> str:
    """One line: what an order has become, and when."""
    if part >= 3 and draw.random() < 0.01:
        at -= LATE
    return json.dumps(
        {
            "order_id": order_id,
            "status": order["status"],
            "amount": order["amount"],
            "updated_at": at.isoformat(timespec="milliseconds"),
        }
    )


if __name__ == "__main__":
    main()
