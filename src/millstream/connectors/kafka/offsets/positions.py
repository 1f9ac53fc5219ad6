"""Where a Kafka source begins in a fresh checkpoint."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from millstream.connectors.api.source import Source
from millstream.connectors.api.values.offsets import StartFiles, StartPosition

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class KafkaPositions(Source):
    """The hooks of a source about positions, for offsets of partitions."""

    def start_files(self, position: StartPosition) -> StartFiles | None:
        """Begin at the offsets, in the form of Spark's `KafkaSourceInitialOffsetWriter`."""
        if position.offset is None:
            return None
        return StartFiles(f"\0v1\n{position.offset}", position.offset)

    def newest_position(self, spark: SparkSession, schema: str | None) -> StartPosition | None:  # noqa: ARG002 - asks the broker
        """Return the end offset of each partition."""
        ends = self.watch_end_offsets()
        if ends is None:
            return None
        offsets = {
            topic: {str(part): end for part, end in parts.items()} for topic, parts in ends.read().items()
        }
        return StartPosition(offset=json.dumps(offsets))
