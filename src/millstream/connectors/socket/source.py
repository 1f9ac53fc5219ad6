"""Spark's socket source: lines of text from a TCP server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from millstream.connectors.api.source import Source
from millstream.connectors.api.values.replay_behaviour import Replayability, ReplayBehaviour

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class SocketSource(Source):
    """Lines of text from a TCP server, one row each, for trying out a pipeline with `nc -lk 9999`."""

    kind = "socket"
    main = "port"
    is_replayable = False
    flows = frozenset({"continuous"})
    columns = "value STRING, timestamp TIMESTAMP"

    host: str = Field(default="127.0.0.1", min_length=1)
    """Host of the server."""
    port: int = Field(ge=1, le=65535, examples=[9999])
    """Port of the server."""
    num_partitions: int | None = Field(default=None, ge=1)
    """Number of partitions of a batch. Default: Spark's default parallelism."""

    def read(self, spark: SparkSession, *, static: bool, schema: str | None) -> DataFrame:  # noqa: ARG002 - columns are fixed
        """Open a stream of `columns`: a line without its line break, and the time when Spark received it."""
        options = {"host": self.host, "port": str(self.port), "includeTimestamp": "true"}
        if self.num_partitions is not None:
            options["numPartitions"] = str(self.num_partitions)
        return spark.readStream.format("socket").options(**options).load()

    def replay(self, *, static: bool) -> ReplayBehaviour:  # noqa: ARG002 - a socket is never static
        """Report that a socket cannot replay, because the server sends each line once."""
        return ReplayBehaviour(
            Replayability.NONE, "cannot replay a lost batch: a socket sends its lines once"
        )

    def identity(self) -> dict[str, str]:
        """Return kind and address."""
        return {"kind": self.kind, "target": f"{self.host}:{self.port}"}

    def describe(self) -> str:
        """Describe as `socket 127.0.0.1:9999`."""
        return f"socket {self.host}:{self.port}"
