"""The pipeline of pipeline.yml in Python: `millstream check -f pipeline.py`, `millstream run -f pipeline.py`.

Names of queries, folders and checkpoints are the same, so that one can continue where the other ended.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

import millstream as ms

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

LAKE = os.environ.get("LAKE", "lake")
SCHEMA = {
    "Arrival_Time": "timestamp",
    "Creation_Time": "timestamp",
    "Device": "string",
    "Index": "int",
    "Model": "string",
    "User": "string",
    "gt": "string",
    "x": "double",
    "y": "double",
    "z": "double",
}

phones = ms.declare(
    "activity",
    defaults={
        "trigger": "1 second",
        "checkpoints": os.environ.get("STATE_DIR", ".millstream/checkpoints"),
    },
)

phones.source(
    "activity",
    ms.json(path="data/activity", max_files_per_trigger=1),
    schema=SCHEMA,
    watermark=("Creation_Time", "5 minutes"),
    on_malformed="dead_letter",
)
phones.source(
    "activity_without_watermark",
    ms.json(path="data/activity", max_files_per_trigger=1),
    schema={name: SCHEMA[name] for name in ("Creation_Time", "User", "gt")},
    on_malformed="drop",
)

phones.source(
    "newest_files",
    ms.json(path="data/activity", max_files_per_trigger=1, latest_first=True),
    schema={name: SCHEMA[name] for name in ("Creation_Time", "User", "gt")},
    on_malformed="drop",
)


@phones.view
def activity_counts(activity: DataFrame) -> DataFrame:
    """How many readings of each activity."""
    return activity.groupBy("gt").agg(F.count("*").alias("readings"))


@phones.view
def averages(activity: DataFrame) -> DataFrame:
    """The mean of each axis, by model and activity."""
    return activity.groupBy("Model", "gt").agg(
        F.count("*").alias("readings"), *(F.avg(axis).alias(axis) for axis in ("x", "y", "z"))
    )


def flat(counted: DataFrame) -> DataFrame:
    """The window's start and end as two columns."""
    start, end = (F.col(f"window.{one}").alias(f"window_{one}") for one in ("start", "end"))
    return counted.select(start, end, "User", "readings")


@phones.view
def windows(activity: DataFrame) -> DataFrame:
    """How many readings of each person in ten minutes; a window is deleted when the watermark has passed it."""
    grouped = activity.groupBy(F.window("Creation_Time", "10 minutes"), "User")
    return flat(grouped.agg(F.count("*").alias("readings")))


@phones.view
def windows_for_ever(activity_without_watermark: DataFrame) -> DataFrame:
    """The same, and no window is ever deleted."""
    grouped = activity_without_watermark.groupBy(F.window("Creation_Time", "10 minutes"), "User")
    # millstream: allow MS201 — what becomes of a query without a watermark is what this example shows
    counted = grouped.agg(F.count("*").alias("readings"))
    return flat(counted)


@phones.view
def unrepeated(activity: DataFrame) -> DataFrame:
    """Each reading of a phone once."""
    return activity.dropDuplicatesWithinWatermark(["User", "Device", "Index"])


@phones.view
def doing(newest_files: DataFrame) -> DataFrame:
    """What each person was last seen doing."""
    # millstream: allow MS201 — a row for each person, and there are six
    return newest_files.groupBy("User").agg(
        F.max_by("gt", "Creation_Time").alias("gt"), F.max("Creation_Time").alias("seen")
    )


phones.query(
    "activity_counts",
    output_mode="complete",
    to=[ms.delta(f"{LAKE}/activity_counts"), ms.memory("activity_counts")],
)
phones.query("averages", output_mode="update", to=ms.delta(path=f"{LAKE}/averages", merge_on=["Model", "gt"]))
phones.query(
    "windows", output_mode="update", to=ms.delta(path=f"{LAKE}/windows", merge_on=["window_start", "User"])
)
phones.query(
    "windows_for_ever",
    output_mode="update",
    to=ms.delta(path=f"{LAKE}/windows_for_ever", merge_on=["window_start", "User"]),
)
phones.query("unrepeated", to=ms.parquet(f"{LAKE}/unrepeated"))
phones.query("doing", output_mode="update", to=ms.delta(path=f"{LAKE}/doing", merge_on=["User"]))
