"""Listen to a run: `millstream run --json | python watch.py`.

Each line of the input is an event. In a hand-written job a `StreamingQueryListener` receives the same: that a query
began, what a batch did, and why a query ended.
"""

from __future__ import annotations

import json
import sys
from typing import Any


def describe(event: dict[str, Any]) -> str | None:
    """Return a line for a person, or None for an event that this program ignores."""
    match event["event"]:
        case "query_started":
            behind = "from the beginning" if event["batch"] is None else f"behind batch {event['batch']}"
            return f"{event['query']} begins {behind}\n  id      {event['id']}\n  run id  {event['run_id']}"
        case "batch_committed":
            rate = event["processed_rate"] or 0
            return (
                f"{event['query']} batch {event['batch']}: {event['rows_in']} rows, {rate:.0f} a second; "
                f"state {event['state_rows']} rows, {event['state_bytes'] / 1e6:.1f} MB"
            )
        case "query_failed":
            records = "".join(f"\n  fails by itself: {place}" for place in event["record"])
            return f"{event['query']} failed ({event['cause']}): {event['reason']}{records}\n  fix: {event['fix']}"
        case "query_stopped":
            return f"{event['query']} ended: {event['reason']}"
    return None


def main() -> None:
    """Print a line for each event as it arrives."""
    for line in sys.stdin:
        if (text := describe(json.loads(line))) is not None:
            sys.stdout.write(f"{text}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
