"""Hooks of a sink for proofs and tests: an isolated copy, and the points at which a run may die."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.connectors.api.sink_hooks.connection import SinkConnection

if TYPE_CHECKING:
    from millstream.connectors.api.sink import Sink
    from millstream.connectors.api.values.sandbox import Sandbox


class SinkSandbox(SinkConnection):
    """A copy of a sink in a sandbox. By default, there is none."""

    def in_sandbox(self, sandbox: Sandbox) -> Sink | None:
        """Return the sink with a target in the sandbox; None if a kind cannot."""
        return None

    def prepare(self) -> None:
        """Create what must exist before the first batch. Called only for a sink in a sandbox."""

    def discard(self) -> None:
        """Delete the written data. Called only for a sink in a sandbox."""

    def failpoints(self) -> tuple[str, ...]:
        """Return the failpoints that the writer passes in every batch."""
        return tuple(self.system.failpoints)
