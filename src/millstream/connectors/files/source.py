"""The sources of files: Parquet, ORC, JSON, CSV and text folders, as streams or as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.connectors.files.feeding import lines, separated, table, texts
from millstream.connectors.files.reading import FilesSource

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame

    from millstream.connectors.elsewhere import Fed

CORRUPT = "_corrupt_record"
FILE = "_file"


class ParquetSource(FilesSource):
    """A folder of Parquet files."""

    kind = "parquet"
    form = "parquet"
    fed = True

    def feed(self, records: Sequence[Fed], number: int, columns: Mapping[str, str]) -> None:
        """Put a file of these rows into the folder, whole."""
        from pyarrow import parquet  # noqa: PLC0415 - for proofs alone

        rows = table(records, columns)
        self._put(number, lambda file: parquet.write_table(rows, file))


class OrcSource(FilesSource):
    """A folder of ORC files."""

    kind = "orc"
    form = "orc"
    fed = True

    def feed(self, records: Sequence[Fed], number: int, columns: Mapping[str, str]) -> None:
        """Put a file of these rows into the folder, whole."""
        from pyarrow import orc  # noqa: PLC0415 - for proofs alone

        rows = table(records, columns, zoned=False)
        self._put(number, lambda file: orc.write_table(rows, str(file)))


class TextSource(FilesSource):
    """A folder of text files, a row a line."""

    kind = "text"
    form = "text"
    columns = "value STRING"
    fed = True

    def feed(self, records: Sequence[Fed], number: int, columns: Mapping[str, str]) -> None:  # noqa: ARG002 - one
        """Put a file of these lines into the folder, whole."""
        self._put(number, lambda file: file.write_bytes(texts(records)))

    def asked(self, schema: str) -> str:  # noqa: ARG002 - a line is a line
        """Always one column `value`."""
        return "value STRING"


class _Parsed(FilesSource):
    """Base of the formats in which a row may be malformed."""

    place = (FILE,)

    def asked(self, schema: str) -> str:
        """The schema, and a column for what does not fit it."""
        return f"{schema}, `{CORRUPT}` STRING"

    def given(self, frame: DataFrame, schema: str | None) -> DataFrame:
        """The schema's columns, `_corrupt_record` (the text of a malformed row, else NULL) and `_file`.

        Without a schema only the columns that Spark infers, and `_file`.
        """
        columns = [_quoted(name) for name in frame.columns if name != CORRUPT]
        corrupt = []
        if schema is not None:
            # Spark reads only the columns a query asks for, and finds a row malformed only by what it reads;
            # it refuses to read no other column than this one. So the answer depends on all of them, by a
            # text of no length that is made for malformed rows only.
            rest = f"substring(cast(struct({', '.join(columns)}) AS STRING), 1, 0)"
            corrupt = [f"CASE WHEN {CORRUPT} IS NOT NULL THEN concat({CORRUPT}, {rest}) END AS {CORRUPT}"]
        return frame.selectExpr(*columns, *corrupt, f"_metadata.file_path AS {FILE}")


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


class JsonSource(_Parsed):
    """A folder of JSON files, one object a line."""

    kind = "json"
    form = "json"
    fed = True

    def feed(self, records: Sequence[Fed], number: int, columns: Mapping[str, str]) -> None:  # noqa: ARG002 - JSON
        """Put a file of these lines into the folder, whole."""
        self._put(number, lambda file: file.write_bytes(lines(records)))


class CsvSource(_Parsed):
    """A folder of CSV files."""

    kind = "csv"
    form = "csv"

    header: bool = False
    """Does each file begin with a line of names?"""
    sep: str = ","
    """What stands between two values."""
    fed = True

    def feed(self, records: Sequence[Fed], number: int, columns: Mapping[str, str]) -> None:
        """Put a file of these lines into the folder, whole."""
        made = separated(records, list(columns), self.sep, header=self.header)
        self._put(number, lambda file: file.write_bytes(made))

    def _options(self, *, static: bool) -> dict[str, str]:
        return {"header": str(self.header).lower(), "sep": self.sep, **super()._options(static=static)}
