"""The traffic that is declared beside a spec, as the input of a proof."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from millstream.connectors.elsewhere import Fed
    from millstream.devstack.traffic_model import Traffic

_BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


class Recorded:
    """Records of `traffic.yml` in the order of their sending, without the late ones; the same for the same seed."""

    def __init__(self, traffic: Traffic, portions: int, rows: int, seed: int) -> None:
        from millstream.devstack.traffic_flow import Flow, Record

        self._traffic = traffic
        self._rows, self._portions, self._seed = rows, portions, seed
        self._flow: object = None
        self._waiting: Record | None = None
        self._make = Flow

    def topics(self) -> frozenset[str]:
        """The topics of its streams."""
        return frozenset(self._traffic.topic(name) for name in self._traffic.streams)

    def portion(self, begin: float, end: float) -> dict[str, list[Fed]]:
        """Records by topic that are sent in these seconds after the beginning."""
        from millstream.connectors.elsewhere import Fed
        from millstream.devstack.traffic_flow import Kind

        start = int(_BEGIN.timestamp()) * 1_000_000
        if self._flow is None:
            # Slower or faster than declared, so that all of it is about as many rows as are wanted.
            declared, wanted = (
                sum(self._traffic.rates().values()),
                self._rows / ((end - begin) * self._portions),
            )
            own = sum(stream.rate or 0 for stream in self._traffic.streams.values())
            self._flow = iter(self._make(self._traffic.at_rate(own * wanted / declared), self._seed, start))
        made: dict[str, list[Fed]] = {}
        while True:
            record = self._waiting or next(self._flow)  # type: ignore[call-overload]
            self._waiting = None
            if record.at >= start + int(end * 1_000_000):
                self._waiting = record
                return made
            # A late row may be dropped or not by how batches were cut: a batch run has no answer to it.
            if record.kind is not Kind.LATE:
                made.setdefault(record.topic, []).append(Fed(record.value, record.key))


def recorded(folder: Path, portions: int, rows: int, seed: int) -> Recorded | None:
    """The traffic beside the spec, or None when none is declared. Raises `WrongUse` for a file that is wrong."""
    from millstream.devstack.traffic_model import FILE, read

    path = folder / FILE
    return Recorded(read(path), portions, rows, seed) if path.is_file() else None
