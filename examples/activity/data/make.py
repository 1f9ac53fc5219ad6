"""Write files of generated phone readings into data/activity: the same options give the same bytes.

A file is five minutes of all phones. A few rows come half an hour late, a few come twice, and one in the second file
is broken.
"""

from __future__ import annotations

import argparse
import json
import os
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "activity"
START = datetime(2026, 1, 1, 9, 0, tzinfo=UTC)
FILE = timedelta(minutes=5)
LATE = timedelta(minutes=30)
# What is measured on each axis on the average, by activity: a phone at rest moves nothing.
ACTIVITIES = {
    "bike": (0.4, -0.2, 9.1),
    "sit": (0.0, 0.0, 9.8),
    "stairsdown": (0.8, -0.9, 8.7),
    "stairsup": (0.9, 0.7, 8.9),
    "stand": (0.1, 0.0, 9.8),
    "walk": (0.6, 0.3, 9.4),
}
PHONES = [("nexus4", "nexus4_1"), ("nexus4", "nexus4_2"), ("s3mini", "s3mini_1")]


def reading(draw: random.Random, at: datetime, number: int) -> dict[str, Any]:
    """What one phone says at a time."""
    user = draw.choice("abcdef")
    model, device = draw.choice(PHONES)
    activity = draw.choice(sorted(ACTIVITIES))
    x, y, z = (round(draw.gauss(mean, 0.5), 4) for mean in ACTIVITIES[activity])
    return {
        "Arrival_Time": (at + timedelta(milliseconds=draw.randint(5, 900))).isoformat(
            timespec="milliseconds"
        ),
        "Creation_Time": at.isoformat(timespec="milliseconds"),
        "Device": device,
        "Index": number,
        "Model": model,
        "User": user,
        "gt": activity,
        "x": x,
        "y": y,
        "z": z,
    }


def main() -> None:
    """Replace the files in data/activity."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=8)
    parser.add_argument("--rows", type=int, default=60, help="of a file")
    parser.add_argument("--seed", type=int, default=53)
    asked = parser.parse_args()
    draw = random.Random(asked.seed)
    FOLDER.mkdir(exist_ok=True)
    for old in FOLDER.glob("part-*.json"):
        old.unlink()
    repeated: list[str] = []
    number = 0
    for part in range(asked.files):
        lines = []
        for _ in range(asked.rows):
            at = START + part * FILE + draw.random() * FILE
            if at >= START + LATE and draw.random() < 0.02:
                at -= LATE
            lines.append(json.dumps(reading(draw, at, number)))
            number += 1
        written = [*lines, *repeated]
        if part == 1:
            written.append(lines[0][: len(lines[0]) // 2])
        repeated = lines[-2:]
        file = FOLDER / f"part-{part:03}.json"
        # Whole or not at all: a stream reads a file when its name appears.
        aside = file.with_suffix(".tmp")
        aside.write_text("".join(f"{line}\n" for line in written), encoding="utf-8")
        # Spark reads files in the order of their times.
        os.utime(aside, (START.timestamp() + part, START.timestamp() + part))
        aside.rename(file)


if __name__ == "__main__":
    main()
