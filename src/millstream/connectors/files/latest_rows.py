"""Read the newest rows of a folder of files without Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow
import pyarrow.csv
import pyarrow.dataset

from millstream.diagnostics.failure import MillstreamError

if TYPE_CHECKING:
    from pathlib import Path

    from millstream.connectors.files.sink import FilesSink


def read_latest_rows(sink: FilesSink, limit: int) -> tuple[list[str], list[list[object]]] | None:
    """Return column names and the last `limit` rows of the newest files, newest file first.

    Returns None for a remote folder. Raises `MillstreamError` if a file cannot be read.
    """
    root = sink.path.local
    if root is None:
        return None
    names: list[str] = []
    rows: list[list[object]] = []
    for path in _newest_first(root):
        if len(rows) >= limit:
            break
        try:
            table = _table(sink, root, path)
        except (pyarrow.ArrowException, OSError) as cause:
            raise MillstreamError(f"{path} cannot be read as {sink.kind}: {cause}") from cause
        names = names or list(table.column_names)
        last_rows = table.slice(max(0, table.num_rows - (limit - len(rows)))).to_pylist()
        rows += [[row.get(name) for name in names] for row in reversed(last_rows)]
    return names, rows


def _newest_first(root: Path) -> list[Path]:
    """List the data files below a folder. Names of internal and Hadoop files begin with an underscore or a dot."""
    if not root.is_dir():
        return []
    files = [
        path
        for path in root.rglob("*")
        if path.is_file() and not any(part.startswith(("_", ".")) for part in path.relative_to(root).parts)
    ]
    return sorted(files, key=lambda path: (path.stat().st_mtime, path.name), reverse=True)


def _table(sink: FilesSink, root: Path, path: Path) -> Any:
    if sink.form == "text":
        with pyarrow.input_stream(str(path), compression="detect") as stream:
            return pyarrow.table({"value": stream.read().decode(errors="replace").splitlines()})
    form: Any = sink.form
    if sink.form == "csv":
        has_header = str(sink.options.get("header", "false")).lower() == "true"
        form = pyarrow.dataset.CsvFileFormat(
            parse_options=pyarrow.csv.ParseOptions(delimiter=str(sink.options.get("sep", ","))),
            read_options=pyarrow.csv.ReadOptions(autogenerate_column_names=not has_header),
        )
    partitioning = pyarrow.dataset.partitioning(flavor="hive")
    return pyarrow.dataset.dataset(
        str(path), format=form, partitioning=partitioning, partition_base_dir=str(root)
    ).to_table()
