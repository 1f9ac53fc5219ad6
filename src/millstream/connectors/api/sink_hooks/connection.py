"""Hooks of a sink for a run and `check --connect`: its target, and whether it can be written."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar

from millstream.connectors.api.system import NOTHING_TO_KNOW, System
from millstream.spec.base import Spec

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from millstream.connectors.api.values.connectivity import ConnectivityFinding
    from millstream.connectors.api.values.lineage_dataset import LineageDataset
    from millstream.connectors.api.values.problem import RequiredResource
    from millstream.spec.output_mode import OutputMode


class SinkConnection(Spec):
    """Target of a sink, and its state outside."""

    kind: ClassVar[str]
    """Key of this kind in a spec."""
    system: ClassVar[System] = NOTHING_TO_KNOW
    """Facts that other packages read through the registry: failpoints, patterns of errors."""
    server: ClassVar[str] = ""
    """Server of the local stack that the kind needs; empty if none."""

    @abstractmethod
    def target(self) -> str:
        """Return the target in a word, without secrets: a path, a table, a topic."""

    def canonical_target(self) -> str:
        """Return `target` in one spelling, if it has several."""
        return self.target()

    def location(self) -> str:
        """Return the target's location, such as a database or brokers, if `target` does not show it. No secrets."""
        return ""

    def identity(self) -> dict[str, str]:
        """Return the target without secrets, for the checkpoint's record. Does not connect."""
        return {"kind": self.kind, "target": self.target()}

    def matches_identity(self, identity: Mapping[str, str]) -> bool:
        """Return whether `identity` is this sink's, possibly in another spelling."""
        own_identity = self.identity()
        return all(identity.get(name) == value for name, value in own_identity.items())

    def writes_to(self) -> frozenset[str]:
        """Return the targets, in the format of `Source.reads_from`."""
        return frozenset()

    def datasets(self) -> tuple[LineageDataset, ...]:
        """Return the lineage names of the targets; nothing if they have none."""
        return ()

    def needs(self) -> list[RequiredResource]:
        """Return the resources that must exist outside, such as topics."""
        return []

    def probe(self) -> None:
        """Connect, and check that the sink can be written. Raises `NotReady` in one sentence."""

    def ask(self, columns: Mapping[str, str] | None, mode: OutputMode) -> Iterable[ConnectivityFinding]:
        """Check the external system: a probe, unless a kind checks more.

        `columns` are the query's columns with types in Spark's DDL, or None if unknown. Raises `Unreachable` if the
        system does not respond, `NotReady` if the sink cannot be written.
        """
        self.probe()
        return ()

    def clear_command(self) -> str:
        """Return the command or instruction that empties the target: `rm -r lake/funnel`."""
        return f"empty {self.target()}"

    def describe(self) -> str:
        """Return a short label for a graph: `postgres purchases`."""
        return f"{self.kind} {self.target()}"
