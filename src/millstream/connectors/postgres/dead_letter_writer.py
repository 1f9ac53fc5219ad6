"""Write dead letters to a Postgres table."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from millstream.connectors.api.dead_letters import COLUMNS, DeadLetterWriter
from millstream.connectors.postgres.writer import PostgresWriter

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from millstream.connectors.api.writer import SinkIdentity
    from millstream.connectors.postgres.sink import PostgresSink

# A header's name may contain a NUL character, which jsonb rejects and JSON text escapes.
_HEADERS = "to_json(headers, map('ignoreNullFields', 'false')) AS headers"


class PostgresDeadLetterWriter(DeadLetterWriter):
    """Writes the dead letters of one query with the fence and the ledger of the sink's writer."""

    def __init__(self, sink: PostgresSink, identity: SinkIdentity) -> None:
        self._writer = PostgresWriter(sink, identity)

    def open(self, spark: SparkSession) -> None:
        """Create missing tables, and take over from an earlier start."""
        self._writer.checkpoint = self.checkpoint
        self._writer.open(spark, _to_table_rows(spark.createDataFrame([], COLUMNS)).schema)

    def keep(self, frame: DataFrame, batch_id: int, size: int) -> bool:  # noqa: ARG002 - the writer counts by itself
        """Write the rows and the batch id in one transaction."""
        return not self._writer.write(_to_table_rows(frame), batch_id).is_skipped

    def keep_rows(self, spark: SparkSession, rows: pa.Table, batch_id: int) -> None:  # noqa: ARG002 - no Spark job
        """Write the rows and the batch id in one transaction, without a Spark job."""
        headers = pa.array(map(_encode_headers, rows["headers"].to_pylist()), pa.string())
        index = rows.schema.get_field_index("headers")
        self._writer.write_rows(rows.set_column(index, "headers", headers), batch_id)

    def close(self) -> None:
        """Close the connection."""
        self._writer.close()


def _encode_headers(headers: list[dict[str, Any]] | None) -> str | None:
    """Return what `_HEADERS` does for the headers of one dead letter."""
    if headers is None:
        return None
    return json.dumps(
        [{"key": header["key"], "value": _encode_base64(header["value"])} for header in headers],
        ensure_ascii=False,
        separators=(",", ":"),
    )


def _encode_base64(value: bytes | None) -> str | None:
    return None if value is None else base64.b64encode(value).decode()


def _to_table_rows(frame: DataFrame) -> DataFrame:
    """Convert dead letters to table rows, with the headers as a JSON array with base64 values."""
    return frame.selectExpr(*(_HEADERS if name == "headers" else f"`{name}`" for name in frame.columns))
