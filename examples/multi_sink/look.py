"""Print what the code of deliveries.py wrote: the largest totals, the newest lines of the log, how many letters.

The database is the one of POSTGRES_URL; `millstream up --detach` prints it.
"""

import os
import sys
from pathlib import Path

import psycopg
from deltalake import DeltaTable, QueryBuilder

TOTALS = "SELECT user_id, event_count, total_amount FROM totals ORDER BY total_amount DESC LIMIT 5"
LOG = 'SELECT batch_id, row_count, total_amount, "timestamp" FROM batch_log ORDER BY "timestamp" DESC LIMIT 5'


def main() -> None:
    """Read them, without Spark."""
    lake = Path(__file__).parent / os.environ.get("LAKE", "lake")
    rows = QueryBuilder().register("totals", DeltaTable(lake / "user_totals")).execute(TOTALS).read_all()
    for user, events, amount in zip(*(column.to_pylist() for column in rows.columns), strict=True):
        sys.stdout.write(f"{user}  {events:4} events  {amount:9.2f}\n")
    with psycopg.connect(os.environ["POSTGRES_URL"]) as connection:
        for number, count, amount, at in connection.execute(LOG):
            sys.stdout.write(f"batch {number}  {count:5} rows  {amount:10.2f}  {at:%Y-%m-%d %H:%M:%S}\n")
    sys.stdout.write(f"{len(list((lake / 'outbox').glob('*.json')))} letters\n")


if __name__ == "__main__":
    main()
