"""Facts about a system for the rest of the package, declared by its kinds and read through the registry."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class System:
    """Facts about a system that its sources, sinks and dead-letter stores share.

    `failpoints` are the moments at which its writer calls `hit_failpoint`, in their order, each with the state of the
    batch: `postgres.staged`. At `undecided`, one of them, the rows are computed and not committed.

    `outages` are regular expressions for a Java stack trace, such as class names: the server could not be reached or
    was not ready, and the same attempt may succeed later. `data_losses` are those of records that were deleted before
    they were read. `commit_lock` is the name of the file that a process of this machine locks for a commit, if there
    is one: a suspended process keeps it.
    """

    failpoints: Mapping[str, str] = field(default_factory=dict)
    undecided: str = ""
    outages: tuple[str, ...] = ()
    data_losses: tuple[str, ...] = ()
    commit_lock: str = ""


NOTHING_TO_KNOW = System()
"""System of kinds that need none of these."""
