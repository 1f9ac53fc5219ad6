"""Calls a function of the user with each batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.connectors.sink import SinkIdentity, Writer, Written

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import DataFrame


class Batch(int):
    """A batch's number that also tells whose batch it is. A function written for Spark takes it as it is."""

    pipeline: str
    query: str
    query_id: str
    """The id of the checkpoint: a fresh checkpoint counts its batches from 0 again under another id."""
    options: Mapping[str, str]
    """What the spec says to the function. Stays in the driver: tasks that are sent the batch find none."""

    def __new__(
        cls, number: int, pipeline: str, query: str, query_id: str, options: Mapping[str, str] | None = None
    ) -> Batch:
        """A number with its query."""
        made = super().__new__(cls, number)
        made.options = dict(options or {})
        made.pipeline, made.query, made.query_id = pipeline, query, query_id
        return made

    def __getnewargs__(self) -> tuple[int, str, str, str]:  # type: ignore[override]
        """What it is made of, for tasks that are sent it."""
        return int(self), self.pipeline, self.query, self.query_id

    def __getstate__(self) -> None:
        """Nothing more: options may hold a password."""

    @property
    def batch_id(self) -> int:
        """The number alone."""
        return int(self)


class ForeachBatchWriter(Writer):
    """Hands batches over. What the function raises ends the batch, which then comes again."""

    runs = False

    def __init__(
        self, function: Callable[..., Any], identity: SinkIdentity, options: Mapping[str, str]
    ) -> None:
        super().__init__(identity)
        self._function = function
        self._options = options

    def write(self, frame: DataFrame, batch_id: int) -> Written:
        """Call the function with the rows and the batch."""
        identity = self.identity
        batch = Batch(batch_id, identity.pipeline, identity.query, identity.query_id, self._options)
        self._function(frame, batch)
        return Written()
