"""The steps of this pipeline that are functions and no SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def unrepeated(activity: DataFrame) -> DataFrame:
    """Each reading once: a phone numbers its readings, so person, phone and number tell a repetition."""
    return activity.dropDuplicatesWithinWatermark(["User", "Device", "Index"])
