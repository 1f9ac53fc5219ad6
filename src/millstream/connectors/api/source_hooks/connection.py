"""Hooks of a source for a run and `check --connect`: what it reads, and whether that exists."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from millstream.connectors.api.system import NOTHING_TO_KNOW, System
from millstream.spec.base import Spec

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from millstream.connectors.api.values.connectivity import CheckpointedSource, ConnectivityFinding
    from millstream.connectors.api.values.lineage_dataset import LineageDataset
    from millstream.connectors.api.values.problem import RequiredResource


class SourceConnection(Spec):
    """Origin of a source, and its state outside."""

    kind: ClassVar[str]
    """Key of this kind in a spec."""
    main: ClassVar[str]
    """Field that is set when the value in the spec is a plain string."""
    system: ClassVar[System] = NOTHING_TO_KNOW
    """Facts that other packages read through the registry: failpoints, patterns of errors."""
    server: ClassVar[str] = ""
    """Server of the local stack that the kind needs; empty if none."""

    def reads_from(self) -> frozenset[str]:
        """Return what is read, in the format of `Sink.writes_to`: topics with their brokers, folders, tables."""
        return frozenset()

    def datasets(self) -> tuple[LineageDataset, ...]:
        """Return the lineage names of what is read; nothing if it has none."""
        return ()

    def needs(self) -> list[RequiredResource]:
        """Return the resources that must exist outside, such as topics and tables."""
        return []

    def identity(self) -> dict[str, str]:
        """Return what is read without secrets, for the checkpoint's record. Does not connect."""
        return {"kind": self.kind}

    def identity_change(self, recorded: Mapping[str, str], current: Mapping[str, str]) -> str | None:
        """Return in one sentence how the source was replaced since the checkpoint was created, or None.

        `recorded` is the identity at the query's last start, `current` the result of `probe`.
        """
        return None

    def probe(self) -> dict[str, str]:
        """Connect, check that the source can be read, and return its ids. Raises `NotReady` in one sentence."""
        return {}

    def ask(
        self, *, static: bool, checkpoints: Sequence[CheckpointedSource], fresh: Sequence[str]
    ) -> Iterable[ConnectivityFinding]:
        """Check the external system: a probe, unless a kind checks more.

        `checkpoints` is the checkpoint data of the queries that read the source; `fresh` are the queries without a
        checkpoint. Raises `Unreachable` if the system does not respond, `NotReady` if what the source reads does not
        exist.
        """
        self.probe()
        return ()

    def describe(self) -> str:
        """Return a short label for a graph: `kafka clicks`."""
        return f"{self.kind} {getattr(self, self.main, '')}".strip()
