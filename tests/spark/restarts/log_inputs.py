"""Tables of Delta and topics of Kafka as input of restarts."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from confluent_kafka import Producer
from deltalake import write_deltalake

from millstream.devstack.servers import topics

if TYPE_CHECKING:
    from pathlib import Path

Rows = list[dict[str, Any]]
_TIMES = ("at", "at2")


@dataclass(frozen=True)
class DeltaTables:
    """A table for each source in a folder; each part of the rows is a commit."""

    folder: Path

    @property
    def names(self) -> dict[str, str]:
        """The folder."""
        return {"$IN": str(self.folder)}

    def add(self, source: str, parts: list[Rows]) -> None:
        """Append each part."""
        (self.folder / "files").mkdir(parents=True, exist_ok=True)
        for part in parts:
            rows = [
                {
                    name: datetime.fromisoformat(value).replace(tzinfo=UTC) if name in _TIMES else value
                    for name, value in row.items()
                }
                for row in part
            ]
            write_deltalake(str(self.folder / source), pa.Table.from_pylist(rows), mode="append")


@dataclass(frozen=True)
class Topics:
    """A topic of two partitions for each source."""

    folder: Path
    address: str
    number: str = field(default_factory=lambda: uuid.uuid4().hex[:8])

    @property
    def names(self) -> dict[str, str]:
        """The broker, the end of the topics' names and a folder for files."""
        return {"$KAFKA": self.address, "$NUMBER": self.number, "$IN": str(self.folder)}

    def add(self, source: str, parts: list[Rows]) -> None:
        """Send all parts, each order to the partition of its number."""
        (self.folder / "files").mkdir(parents=True, exist_ok=True)
        topic = f"{source}-{self.number}"
        topics.create_topics(self.address, {topic: {"partitions": "2"}})
        producer = Producer({"bootstrap.servers": self.address})
        for row in (row for part in parts for row in part):
            producer.produce(topic, json.dumps(row).encode(), partition=int(row["id"][1:]) % 2)
        assert producer.flush(60) == 0
