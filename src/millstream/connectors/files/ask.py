"""What `check --connect` asks a file system: can the folder be written, and does another writer own it?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.connectors.asking import Remark
from millstream.connectors.files.place import writable
from millstream.diagnostics.failure import NotReady

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.connectors.files.sink import FilesSink


def of_sink(sink: FilesSink) -> Iterator[Remark]:
    """What stands in the way of a folder's first batch, or of those who read it."""
    try:
        writable(sink.path)
    except NotReady as refused:
        yield Remark("MS567", refused.what, "path", fix=refused.fix)
        return
    local = sink.path.local
    if local is not None and (local / "_spark_metadata").exists():
        yield Remark(
            "MS570",
            f"'{sink.path}' was written by Spark's own file sink, which left _spark_metadata in it",
            "path",
            "Spark then reads only the files that are listed there, and so none that are written here",
            "write to another folder, or copy the files that are listed and remove _spark_metadata",
        )
    elif local is not None and (local / "_delta_log").exists():
        yield Remark(
            "MS570",
            f"'{sink.path}' is a Delta table",
            "path",
            "its readers see only the files that its log lists, and VACUUM deletes the others",
            "write to another folder, or use the delta sink",
        )
