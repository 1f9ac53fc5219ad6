"""Read the first rows of Parquet files, and their columns as Spark SQL types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.connectors.api.values.file_sample import FileSample

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def sample_parquet(files: Sequence[Path], limit: int) -> FileSample:
    """Read rows, and the columns with their types from the first file."""
    import pyarrow as pa  # noqa: PLC0415 - only for `init --from-files`
    from pyarrow import parquet  # noqa: PLC0415 - as above

    rows: list[dict[str, Any]] = []
    columns: dict[str, str] = {}
    for file in files:
        try:
            opened = parquet.ParquetFile(file)
        except (pa.ArrowException, OSError) as error:
            raise ValueError(f"{file.name} is not a Parquet file: {error}") from None
        with opened:
            columns = columns or {field.name: spark_type(field.type) for field in opened.schema_arrow}
            for batch in opened.iter_batches(batch_size=limit):
                rows += batch.slice(0, limit - len(rows)).to_pylist()
                break
        if len(rows) >= limit:
            break
    return FileSample(rows, columns)


def spark_type(kind: Any) -> str:
    """Return the Spark SQL type of an Arrow type. Raises ValueError if Spark has none."""
    from pyarrow import types as is_a  # noqa: PLC0415 - as above

    simple = {
        "bool": "boolean", "int8": "tinyint", "int16": "smallint", "int32": "int", "int64": "bigint",
        "uint8": "smallint", "uint16": "int", "uint32": "bigint", "float": "float", "double": "double",
        "string": "string", "large_string": "string", "binary": "binary", "large_binary": "binary",
        "date32[day]": "date", "uint64": "decimal(20,0)",
    }  # fmt: skip
    if is_a.is_dictionary(kind):
        return spark_type(kind.value_type)
    if is_a.is_timestamp(kind):
        # Spark reads a time without a zone as one, too, and a watermark needs it.
        return "timestamp"
    if is_a.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if is_a.is_map(kind):
        return f"map<{spark_type(kind.key_type)}, {spark_type(kind.item_type)}>"
    if is_a.is_list(kind) or is_a.is_large_list(kind):
        return f"array<{spark_type(kind.value_type)}>"
    if is_a.is_struct(kind):
        fields = (f"`{field.name}`: {spark_type(field.type)}" for field in kind)
        return f"struct<{', '.join(fields)}>"
    if str(kind) not in simple:
        raise ValueError(f"Spark cannot read the type {kind}")
    return simple[str(kind)]
