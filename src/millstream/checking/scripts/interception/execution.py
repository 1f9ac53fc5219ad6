"""What a proof does with the calls of a script that a check only records: it reads rows, and runs the queries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

    from millstream.checking.scripts.interception.monkeypatch import Patches
    from millstream.checking.scripts.interception.recording import StartedQuery

WriterCall = tuple[str, tuple[Any, ...], dict[str, Any]]
"""A method of a writer, and its arguments."""


class ScriptExecution(Protocol):
    """Runs the queries of a script over given rows, in a folder of its own."""

    def begin(self, patches: Patches) -> None:
        """Forget an earlier run of the script, and replace what a run needs in addition."""

    def read(self, spark: SparkSession, source: str, *, streaming: bool) -> DataFrame | None:
        """Return the rows of a source by its name; None if there are none for it."""

    def read_table(self, spark: SparkSession, place: str, *, streaming: bool) -> DataFrame | None:
        """Return a table that the script has written; None if it has not."""

    def start(self, query: StartedQuery) -> None:
        """Run a query until it has read everything."""

    def write(self, frame: DataFrame, calls: Sequence[WriterCall]) -> None:
        """Write a batch by the calls of Spark's batch writer, of which the last one writes."""

    def skip(self, what: str) -> None:
        """Note something that a run of the script would do, and this one does not."""
