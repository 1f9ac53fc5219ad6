"""Hooks of a source for `show`, previews and backfills: its newest or its oldest records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from millstream.spec.base import Spec

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from millstream.connectors.api.values.offsets import EndOffsets, OffsetGap
    from millstream.connectors.api.values.recent_message import RecentMessage


class SourceContents(Spec):
    """Reads a part of a source. By default, all of it."""

    def newest(self, records: int) -> Self:
        """Return the source reading about this many of its newest records in a static read.

        Returns the source itself if a kind does not know which are the newest.
        """
        return self

    def generate(self, many: int, until: datetime) -> list[Mapping[str, Any]]:
        """Return `many` rows as the source would generate them up to that time; none for other kinds of source."""
        return []

    def recent(self, limit: int) -> list[RecentMessage] | None:
        """Return the last messages, newest first; None if a kind has no messages. Connects."""
        return None

    def watch_end_offsets(self) -> EndOffsets | None:
        """Return a reader of the newest offsets, to be asked every few seconds; None if a kind has none.

        Does not connect; the reader does.
        """
        return None

    def oldest(self) -> Self:
        """Return the source for a static read from its oldest record, wherever a stream starts."""
        return self

    def forgotten(self) -> list[OffsetGap]:
        """Return records that the source had before its oldest one, as far as known. Connects."""
        return []
