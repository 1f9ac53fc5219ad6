"""Use the traffic.yml next to a spec as the input of a proof."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from millstream.connectors.api.values.sandbox import InputRecord
    from millstream.devstack.traffic.model import Traffic

_BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


class RecordedTraffic:
    """Generates the records of `traffic.yml` in sending order, without late ones; repeatable for the same seed."""

    def __init__(self, traffic: Traffic, portions: int, rows: int, seed: int) -> None:
        from millstream.devstack.traffic.flow import TrafficFlow, TrafficRecord

        self._traffic = traffic
        self._rows, self._portions, self._seed = rows, portions, seed
        self._flow: object = None
        self._waiting: TrafficRecord | None = None
        self._make = TrafficFlow

    def topics(self) -> frozenset[str]:
        """Return the topics of its streams."""
        return frozenset(self._traffic.topic(name) for name in self._traffic.streams)

    def portion(self, begin: float, end: float) -> dict[str, list[InputRecord]]:
        """Return the records by topic that are sent between these seconds after the beginning."""
        from millstream.connectors.api.values.sandbox import InputRecord
        from millstream.devstack.traffic.flow import RecordKind

        start = int(_BEGIN.timestamp()) * 1_000_000
        if self._flow is None:
            # Scale the declared rate so that the total is about the requested number of rows.
            declared, target = (
                sum(self._traffic.rates().values()),
                self._rows / ((end - begin) * self._portions),
            )
            own_rate = sum(stream.rate or 0 for stream in self._traffic.streams.values())
            self._flow = iter(
                self._make(self._traffic.at_rate(own_rate * target / declared), self._seed, start)
            )
        records: dict[str, list[InputRecord]] = {}
        while True:
            record = self._waiting or next(self._flow)  # type: ignore[call-overload]
            self._waiting = None
            if record.at >= start + int(end * 1_000_000):
                self._waiting = record
                return records
            # Whether a late row is dropped depends on the batch split, so a batch run cannot predict it.
            if record.kind is not RecordKind.LATE:
                records.setdefault(record.topic, []).append(InputRecord(record.value, record.key))


def read_recorded_traffic(folder: Path, portions: int, rows: int, seed: int) -> RecordedTraffic | None:
    """Return the traffic next to the spec, or None if there is none. Raises `InvalidInput` if the file is invalid."""
    from millstream.devstack.traffic.model import FILE, read_traffic

    path = folder / FILE
    return RecordedTraffic(read_traffic(path), portions, rows, seed) if path.is_file() else None
