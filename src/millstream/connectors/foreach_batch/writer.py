"""Call a user's function with each batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.connectors.api.writer import SinkIdentity, Writer, WriteResult

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import DataFrame


class Batch(int):
    """A batch id with its pipeline and query. Functions written for Spark can use it as an int."""

    pipeline: str
    query: str
    query_id: str
    """Id of the checkpoint. A new checkpoint has a new id, and numbers its batches from 0 again."""
    options: Mapping[str, str]
    """Options of the spec for the function. They stay in the driver: a batch sent to tasks has none."""

    def __new__(
        cls, number: int, pipeline: str, query: str, query_id: str, options: Mapping[str, str] | None = None
    ) -> Batch:
        """Create a batch id with its query."""
        batch = super().__new__(cls, number)
        batch.options = dict(options or {})
        batch.pipeline, batch.query, batch.query_id = pipeline, query, query_id
        return batch

    def __getnewargs__(self) -> tuple[int, str, str, str]:  # type: ignore[override]
        """Return the constructor arguments, for pickling to tasks."""
        return int(self), self.pipeline, self.query, self.query_id

    def __getstate__(self) -> None:
        """Pickle nothing else, because options may contain a password."""

    @property
    def batch_id(self) -> int:
        """The number as a plain int."""
        return int(self)


class ForeachBatchWriter(Writer):
    """Passes batches to the function. If it raises, the batch fails and is repeated."""

    always_executes = False

    def __init__(
        self, function: Callable[..., Any], identity: SinkIdentity, options: Mapping[str, str]
    ) -> None:
        super().__init__(identity)
        self._function = function
        self._options = options

    def write(self, frame: DataFrame, batch_id: int) -> WriteResult:
        """Call the function with the rows and the batch."""
        identity = self.identity
        batch = Batch(batch_id, identity.pipeline, identity.query, identity.query_id, self._options)
        self._function(frame, batch)
        return WriteResult()
