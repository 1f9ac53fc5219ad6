"""Suggested limit for a first batch that would read a whole topic."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.connectors.api.values.offsets import BatchLimit

if TYPE_CHECKING:
    from collections.abc import Sequence

# About 100 MB with records of one kilobyte: a batch of seconds on two cores.
RECORDS = 100_000


def suggest_limit(topics: Sequence[str]) -> BatchLimit:
    """Return the suggested limit for a source that starts at the oldest records of these topics."""
    names = " and ".join(f"'{topic}'" for topic in topics)
    first_batch = (
        f"all records of {'topic' if len(topics) == 1 else 'topics'} {names}" if topics else "all records"
    )
    return BatchLimit("max_offsets_per_trigger", RECORDS, first_batch, ("starting_offsets",))
