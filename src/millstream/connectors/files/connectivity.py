"""Check a folder for `check --connect`: is it writable, and does another writer own it?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.connectors.api.values.connectivity import ConnectivityFinding
from millstream.connectors.files.sink_folder import require_writable
from millstream.diagnostics.failure import NotReady

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.connectors.files.sink import FilesSink


def check_sink(sink: FilesSink) -> Iterator[ConnectivityFinding]:
    """Find problems for a folder's first batch or for its readers."""
    try:
        require_writable(sink.path)
    except NotReady as refusal:
        yield ConnectivityFinding("MS567", refusal.what, "path", fix=refusal.fix)
        return
    local = sink.path.local
    if local is not None and (local / "_spark_metadata").exists():
        yield ConnectivityFinding(
            "MS570",
            f"'{sink.path}' was written by Spark's own file sink, which left _spark_metadata in it",
            "path",
            "Spark then reads only the files listed there, and therefore none that this sink writes",
            "write to another folder, or copy the listed files and delete _spark_metadata",
        )
    elif local is not None and (local / "_delta_log").exists():
        yield ConnectivityFinding(
            "MS570",
            f"'{sink.path}' is a Delta table",
            "path",
            "readers of a Delta table see only the files in its log, and VACUUM deletes other files",
            "write to another folder, or use the delta sink",
        )
