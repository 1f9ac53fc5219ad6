"""Write the static table of sensors that readings are joined with: 20 sensors in 4 rooms."""

import csv
from pathlib import Path

ROOMS = ("boiler", "cellar", "hall", "roof")


def main() -> None:
    """Write sensor_details/details.csv next to this file."""
    folder = Path(__file__).parent / "sensor_details"
    folder.mkdir(exist_ok=True)
    with (folder / "details.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["sensor_id", "room", "unit", "upper_limit"])
        for number in range(1, 21):
            writer.writerow([f"s{number:02}", ROOMS[number % 4], "celsius", 32.0 + number % 4])


if __name__ == "__main__":
    main()
