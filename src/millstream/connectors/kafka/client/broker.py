"""Broker address, login and options: the settings that source and sink share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BeforeValidator, Field

from millstream.connectors.api.values.lineage_dataset import LineageDataset
from millstream.connectors.api.values.problem import Problem
from millstream.connectors.kafka.client.options import Options, to_strings
from millstream.connectors.kafka.client.security import Security
from millstream.spec.base import Spec

if TYPE_CHECKING:
    from collections.abc import Iterable


# The columns of Spark's reader of topics.
RECORD_COLUMNS = (
    "key BINARY, value BINARY, topic STRING, partition INT, offset BIGINT, "
    "timestamp TIMESTAMP, timestampType INT"
)


def _split_names(value: Any) -> Any:
    """Split a text with commas into names; leave a list unchanged."""
    if isinstance(value, str):
        return tuple(name.strip() for name in value.split(",") if name.strip())
    return value


CommaNames = Annotated[
    tuple[str, ...], BeforeValidator(_split_names, json_schema_input_type=str | tuple[str, ...])
]
"""Names as a list, or as one text with commas."""


class Broker(Spec):
    """Connection to a Kafka broker."""

    bootstrap_servers: CommaNames = Field(min_length=1, examples=["localhost:9092"])
    """Brokers for the first connection, as HOST:PORT: a list, or one text with commas. The client learns the
    addresses of all other brokers from them."""
    security: Security = Security()
    """Encryption and login."""
    options: Options = Field(default_factory=dict, examples=[{"kafka.client.id": "funnel"}])
    """Further options of the Kafka client, by the names in Kafka's documentation with the prefix `kafka.`."""

    def client(self) -> dict[str, str]:
        """Return the options of Spark's Kafka source and sink: brokers, login, then the given options."""
        return {
            "kafka.bootstrap.servers": ",".join(self.bootstrap_servers),
            **self.security.java(),
            **to_strings(self.options),
        }

    def native(self) -> dict[str, str]:
        """Return the settings of librdkafka, without options of the Java client."""
        return {"bootstrap.servers": ",".join(self.bootstrap_servers), **self.security.native()}

    def place_of(self, topic: str) -> str:
        """Return the topic with its brokers, for comparison."""
        return f"topic {topic} at {','.join(sorted(self.bootstrap_servers))}"

    def datasets_of(self, topics: Iterable[str]) -> tuple[LineageDataset, ...]:
        """Return the lineage names of topics, which use the first broker."""
        return tuple(LineageDataset(f"kafka://{self.bootstrap_servers[0]}", topic) for topic in topics)

    def broker_problems(self) -> list[Problem]:
        """Check that brokers have a port and that the login is complete."""
        problems = [
            Problem(
                "bootstrap_servers",
                f"'{server}' is not HOST:PORT",
                f"write it as {server.partition('://')[2] or server}:9092"
                if ":" not in server
                else "write HOST:PORT",
            )
            for server in self.bootstrap_servers
            if "://" in server or not server.rpartition(":")[2].isdigit()
        ]
        return problems + self.security.problems()
