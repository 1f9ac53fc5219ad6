"""Spark's socket source: lines of text from a server that sends them as they come."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from millstream.connectors.source import Replay, Replays, Source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class SocketSource(Source):
    """Lines of text from a TCP server, one row each, to try a pipeline with `nc -lk 9999` and a keyboard."""

    kind = "socket"
    main = "port"
    replayable = False
    flows = frozenset({"continuous"})
    columns = "value STRING, timestamp TIMESTAMP"

    host: str = Field(default="127.0.0.1", min_length=1)
    """Where the server listens."""
    port: int = Field(ge=1, le=65535, examples=[9999])
    """The port it listens on."""
    num_partitions: int | None = Field(default=None, ge=1)
    """Into how many partitions a batch is cut; Spark's default parallelism unless given."""

    def read(self, spark: SparkSession, *, static: bool, schema: str | None) -> DataFrame:  # noqa: ARG002 - columns are fixed
        """A stream of `columns`: a line without its end, and when Spark had it."""
        options = {"host": self.host, "port": str(self.port), "includeTimestamp": "true"}
        if self.num_partitions is not None:
            options["numPartitions"] = str(self.num_partitions)
        return spark.readStream.format("socket").options(**options).load()

    def replay(self, *, static: bool) -> Replay:  # noqa: ARG002 - a socket is never static
        """Nothing: the server has sent the lines and forgotten them."""
        return Replay(Replays.NONE, "cannot give a lost batch again: a socket sends its lines once")

    def identity(self) -> dict[str, str]:
        """Kind and address."""
        return {"kind": self.kind, "target": f"{self.host}:{self.port}"}

    def describe(self) -> str:
        """`socket 127.0.0.1:9999`."""
        return f"socket {self.host}:{self.port}"
