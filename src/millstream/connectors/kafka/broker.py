"""Where a broker is, and what may be asked of it: settings that source and sink share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BeforeValidator, Field

from millstream.connectors.dataset import Dataset
from millstream.connectors.kafka.options import Options, text
from millstream.connectors.kafka.security import Security
from millstream.connectors.source import Problem
from millstream.spec.base import Spec

if TYPE_CHECKING:
    from collections.abc import Iterable


def _several(value: Any) -> Any:
    """Names as a list, whether they came as a list or as a text with commas."""
    if isinstance(value, str):
        return tuple(name.strip() for name in value.split(",") if name.strip())
    return value


CommaNames = Annotated[
    tuple[str, ...], BeforeValidator(_several, json_schema_input_type=str | tuple[str, ...])
]
"""Names as a list, or as one text with commas between them."""


class Broker(Spec):
    """How brokers are reached."""

    bootstrap_servers: CommaNames = Field(min_length=1, examples=["localhost:9092"])
    """Brokers to ask first, as HOST:PORT; one text with commas or a list. They name the others."""
    security: Security = Security()
    """Encryption and login."""
    options: Options = Field(default_factory=dict, examples=[{"kafka.client.id": "funnel"}])
    """Further options of the Kafka client, by the names of its documentation with `kafka.` before."""

    def client(self) -> dict[str, str]:
        """Options of Spark's Kafka source and sink: brokers, login, then the options given."""
        return {
            "kafka.bootstrap.servers": ",".join(self.bootstrap_servers),
            **self.security.java(),
            **text(self.options),
        }

    def native(self) -> dict[str, str]:
        """Settings of the client that asks about topics; options of Java's client are not among them."""
        return {"bootstrap.servers": ",".join(self.bootstrap_servers), **self.security.native()}

    def place_of(self, topic: str) -> str:
        """A topic and where it is, so that two can be compared."""
        return f"topic {topic} at {','.join(sorted(self.bootstrap_servers))}"

    def datasets_of(self, topics: Iterable[str]) -> tuple[Dataset, ...]:
        """Topics as lineage names them: by the first broker."""
        return tuple(Dataset(f"kafka://{self.bootstrap_servers[0]}", topic) for topic in topics)

    def broker_problems(self) -> list[Problem]:
        """Brokers without a port, and what is wrong with the login."""
        found = [
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
        return found + self.security.problems()
