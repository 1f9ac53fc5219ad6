"""Read and write files with Arrow instead of Spark: counts of rows, and the Parquet files of a small batch."""

from __future__ import annotations

import json
import re
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.orc
import pyarrow.parquet

from millstream.spark import internals

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from millstream.connectors.files.sink import FilesSink

# Types that Arrow and Spark write to Parquet alike, and those of them whose text in a folder's name is the same.
_COLUMNS = re.compile(
    r"boolean|tinyint|smallint|int|bigint|float|double|string|binary|date|timestamp|timestamp_ntz|decimal\(.*"
)
_FOLDERS = ("boolean", "tinyint", "smallint", "int", "bigint", "date", "string")
# Codecs that Arrow and Spark know by the same name.
_CODECS = ("snappy", "gzip", "zstd", "none")
_TIMESTAMPS = "spark.sql.parquet.outputTimestampType"
_CODEC = "spark.sql.parquet.compression.codec"
# Delta sets these in a session. They concern columns with an id.
_IDS = ("spark.sql.parquet.fieldId.read.enabled", "spark.sql.parquet.fieldId.write.enabled")
_ID = "parquet.field.id"
# What Spark escapes in the name of a partition's folder (`ExternalCatalogUtils.escapePathName`).
_ESCAPED = re.compile(r"[\x01-\x1f\"#%'*/:=?\\\x7f{\[\]^]")
_NULL = "__HIVE_DEFAULT_PARTITION__"
# First bytes of a Parquet file whose footer is encrypted.
_ENCRYPTED = b"PARE"


def count_rows(path: Path, form: str) -> int | None:
    """Return the number of rows in a file's footer, or None for formats without it and for an encrypted footer."""
    if form == "parquet":
        with path.open("rb") as file:
            if file.read(len(_ENCRYPTED)) == _ENCRYPTED:
                return None
        return int(pyarrow.parquet.read_metadata(path).num_rows)
    if form == "orc":
        return int(pyarrow.orc.ORCFile(path).nrows)
    return None


@dataclass(frozen=True)
class ParquetFiles:
    """Writes the rows of a query to Parquet files that differ from Spark's in nothing that a reader sees."""

    partition_by: tuple[str, ...]
    codec: str
    bounded: tuple[str, ...]
    """Columns whose least and greatest value are in the files. To Spark NaN is the greatest number, and Arrow leaves
    it out, so that Spark would skip a file that has it."""
    metadata: dict[str, str]
    """Spark's entries in the footer: its version, which says how old dates are stored, and the columns."""

    @staticmethod
    def of(sink: FilesSink, spark: SparkSession, schema: StructType) -> ParquetFiles | None:
        """Return how to write a sink's rows, or None if only Spark can write them as the sink and the session say."""
        types = {field.name: field.dataType.simpleString() for field in schema.fields}
        settings = spark.conf.getAll
        codec = (sink.compression or settings.get(_CODEC) or spark.conf.get(_CODEC) or "").lower()
        is_plain = (
            sink.form == "parquet"
            and not sink.options
            and codec in _CODECS
            and spark.conf.get(_TIMESTAMPS) == "TIMESTAMP_MICROS"
            and all(_COLUMNS.fullmatch(name) for name in types.values())
            and all(types[name] in _FOLDERS for name in sink.partition_by)
            and not any(_ID in field.metadata for field in schema.fields)
        )
        others = [key for key in settings if key.startswith(("spark.sql.parquet.", "spark.hadoop.parquet."))]
        encryption = internals.hadoop_configuration(spark).get("parquet.crypto.factory.class")
        if not is_plain or set(others) - {_TIMESTAMPS, _CODEC, *_IDS} or encryption:
            return None
        fields: list[dict[str, Any]] = [
            field for field in json.loads(schema.json())["fields"] if field["name"] not in sink.partition_by
        ]
        return ParquetFiles(
            sink.partition_by,
            codec,
            tuple(
                field["name"] for field in fields if types[field["name"]] not in ("float", "double", "binary")
            ),
            {
                "org.apache.spark.version": spark.version,
                "org.apache.spark.sql.parquet.row.metadata": json.dumps({"type": "struct", "fields": fields}),
            },
        )

    def write(self, rows: pa.Table, folder: Path) -> None:
        """Write a file for each partition of the rows; no file if there are no rows."""
        folder.mkdir(parents=True)
        for place, part in self._partitions(rows):
            home = folder / place
            home.mkdir(parents=True, exist_ok=True)
            columns = part.drop_columns(list(self.partition_by))
            file = home / f"part-00000-{uuid.uuid4()}-c000.{self.codec}.parquet"
            with pyarrow.parquet.ParquetWriter(
                file,
                columns.schema,
                compression=self.codec,
                write_statistics=list(self.bounded),
                store_schema=False,
                store_decimal_as_integer=True,
            ) as writer:
                writer.write_table(columns)
                writer.add_key_value_metadata(self.metadata)

    def _partitions(self, rows: pa.Table) -> Iterator[tuple[str, pa.Table]]:
        """Yield the rows of each partition with the path of its folder, as Spark names it."""
        if not self.partition_by or not rows.num_rows:
            if rows.num_rows:
                yield "", rows
            return
        names = [f"k{number}" for number in range(len(self.partition_by))]
        texts = [pc.cast(rows[column], pa.string()) for column in self.partition_by]
        numbered = pa.table([*texts, pa.array(range(rows.num_rows))], [*names, "row"])
        for group in numbered.group_by(names).aggregate([("row", "list")]).to_pylist():
            parts = [
                f"{_escape(column)}={_escape(group[name]) if group[name] else _NULL}"
                for column, name in zip(self.partition_by, names, strict=True)
            ]
            yield "/".join(parts), rows.take(group["row_list"])


def _escape(text: str) -> str:
    return _ESCAPED.sub(lambda match: f"%{ord(match[0]):02X}", text)
