"""File sources: folders of Parquet, ORC, JSON, CSV and text files, as streams or as static tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.connectors.api.ddl import quote_name
from millstream.connectors.files.base_source import FilesSource
from millstream.connectors.files.sampling import parquet_files, text_files
from millstream.connectors.files.sandbox_io import format_csv, join_records, join_values, to_arrow_table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame

    from millstream.connectors.api.values.file_sample import FileSample
    from millstream.connectors.api.values.sandbox import InputRecord

CORRUPT = "_corrupt_record"
FILE = "_file"


class ParquetSource(FilesSource):
    """A folder of Parquet files."""

    kind = "parquet"
    form = "parquet"
    suffixes = (".parquet",)
    is_feedable = True

    @classmethod
    def sample_files(cls, files: Sequence[Path], limit: int) -> FileSample:
        """Read rows from the beginning of the files."""
        return parquet_files.sample_parquet(files, limit)

    def feed(self, records: Sequence[InputRecord], number: int, columns: Mapping[str, str]) -> None:
        """Put a file with these rows into the folder by a rename."""
        from pyarrow import parquet  # noqa: PLC0415 - for proofs alone

        rows = to_arrow_table(records, columns)
        self._write_portion(number, lambda file: parquet.write_table(rows, file))


class OrcSource(FilesSource):
    """A folder of ORC files."""

    kind = "orc"
    form = "orc"
    is_feedable = True

    def feed(self, records: Sequence[InputRecord], number: int, columns: Mapping[str, str]) -> None:
        """Put a file with these rows into the folder by a rename."""
        from pyarrow import orc  # noqa: PLC0415 - for proofs alone

        rows = to_arrow_table(records, columns, zoned=False)
        self._write_portion(number, lambda file: orc.write_table(rows, str(file)))


class TextSource(FilesSource):
    """A folder of text files with a row per line."""

    kind = "text"
    form = "text"
    columns = "value STRING"
    is_feedable = True

    def feed(self, records: Sequence[InputRecord], number: int, columns: Mapping[str, str]) -> None:  # noqa: ARG002 - one
        """Put a file with these lines into the folder by a rename."""
        self._write_portion(number, lambda file: file.write_bytes(join_values(records)))

    def reader_schema(self, schema: str) -> str:  # noqa: ARG002 - lines have no schema
        """Return the schema with its single column `value`."""
        return "value STRING"


class _Parsed(FilesSource):
    """Base of the formats with rows that may be malformed."""

    place = (FILE,)

    def reader_schema(self, schema: str) -> str:
        """Return the schema with a column for malformed rows."""
        return f"{schema}, `{CORRUPT}` STRING"

    def convert_frame(self, frame: DataFrame, schema: str | None) -> DataFrame:
        """Select the schema's columns, `_corrupt_record` (the text of a malformed row, or NULL) and `_file`.

        Without a schema, select only the columns that Spark infers, and `_file`.
        """
        columns = [quote_name(name) for name in frame.columns if name != CORRUPT]
        corrupt = []
        if schema is not None:
            # Spark reads only the columns that a query needs, and detects a malformed row only in what it reads; it
            # refuses to read only this column. The result therefore depends on all columns, through an empty text
            # that is computed only for malformed rows.
            empty_text = f"substring(cast(struct({', '.join(columns)}) AS STRING), 1, 0)"
            corrupt = [
                f"CASE WHEN {CORRUPT} IS NOT NULL THEN concat({CORRUPT}, {empty_text}) END AS {CORRUPT}"
            ]
        return frame.selectExpr(*columns, *corrupt, f"_metadata.file_path AS {FILE}")


class JsonSource(_Parsed):
    """A folder of JSON files, one object per line."""

    kind = "json"
    form = "json"
    suffixes = (".json", ".jsonl", ".ndjson")
    is_feedable = True

    @classmethod
    def sample_files(cls, files: Sequence[Path], limit: int) -> FileSample:
        """Read rows from the beginning of the files."""
        return text_files.sample_json(files, limit)

    def feed(self, records: Sequence[InputRecord], number: int, columns: Mapping[str, str]) -> None:  # noqa: ARG002 - JSON
        """Put a file with these lines into the folder by a rename."""
        self._write_portion(number, lambda file: file.write_bytes(join_records(records)))


class CsvSource(_Parsed):
    """A folder of CSV files."""

    kind = "csv"
    form = "csv"
    suffixes = (".csv", ".tsv")

    header: bool = False
    """Whether each file starts with a line of column names, which must be those of the schema, in its order. With
    `options: {enforceSchema: true}` the names are ignored."""
    sep: str = ","
    """Separator between two values."""
    is_feedable = True

    @classmethod
    def sample_files(cls, files: Sequence[Path], limit: int) -> FileSample:
        """Read rows from the beginning of the files."""
        return text_files.sample_csv(files, limit)

    def feed(self, records: Sequence[InputRecord], number: int, columns: Mapping[str, str]) -> None:
        """Put a file with these lines into the folder by a rename."""
        content = format_csv(records, list(columns), {"sep": self.sep, **self.options}, header=self.header)
        self._write_portion(number, lambda file: file.write_bytes(content))

    def _options(self, *, static: bool) -> dict[str, str]:
        # By default, Spark takes columns by position and ignores their names in the file.
        names = {"header": "true", "enforceSchema": "false"} if self.header else {"header": "false"}
        return {**names, "sep": self.sep, **super()._options(static=static)}
