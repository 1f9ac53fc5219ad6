"""Each event once, however often it was sent."""

from pyspark.sql import DataFrame


def clean_events(raw_events: DataFrame) -> DataFrame:
    """The first delivery of each event.

    `event_ts` is in the key because Spark forgets a key when the watermark has passed its event time, and a key
    without event time never. A retry has the same bytes as the first delivery, so it has the same `event_ts` too.
    """
    return raw_events.dropDuplicates(["event_id", "event_ts"])
