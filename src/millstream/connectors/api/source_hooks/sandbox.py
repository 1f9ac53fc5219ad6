"""Hooks of a source for proofs and tests: an isolated copy that can be fed."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from millstream.spec.base import Spec

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from millstream.connectors.api.source import Source
    from millstream.connectors.api.values.sandbox import InputRecord, Sandbox


class SourceSandbox(Spec):
    """A copy of a source in a sandbox. By default, there is none."""

    is_feedable: ClassVar[bool] = False
    """Whether `feed` can add records."""

    def in_sandbox(self, sandbox: Sandbox) -> Source | None:
        """Return the source reading everything from a sandbox; None if a kind cannot."""
        return None

    def feed(self, records: Sequence[InputRecord], number: int, columns: Mapping[str, str]) -> None:
        """Add records, as portion `number`. Called only for a source in a sandbox.

        `columns` are those of the spec's schema, with types in Spark's DDL.
        """

    def reads_topic(self, topic: str) -> bool:
        """Return whether the source reads the topic."""
        return False

    def discard(self) -> None:
        """Delete the records that were added. Called only for a source in a sandbox."""
