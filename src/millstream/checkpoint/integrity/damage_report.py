"""Describe one damage of a checkpoint: what it is, its effect on the sinks, and how to repair it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from millstream.checkpoint.remote.path import CheckpointPath

AFRESH = "without a copy of them, start with an empty checkpoint folder and emptied sinks"
# The suggested fix if nothing on the disk can replace what is lost.
COPY = (
    "put the file back from a copy of the checkpoint; without one, start with an empty checkpoint folder "
    "and emptied sinks"
)


@dataclass(frozen=True)
class CheckpointDamage:
    """A file that is truncated, empty or missing, and whether `run --repair` can repair it.

    `what` and `why` go together as `what: why`. It can be repaired if there is a file to move aside or to write.
    `cure` then says what is done, and otherwise what the user must do.
    """

    what: str
    file: CheckpointPath
    why: str
    cure: str
    moved_files: tuple[CheckpointPath, ...] = ()
    """Files that are moved to `_millstream/aside/`."""
    new_text: str | None = None
    """The text that is written to `file`."""

    @property
    def is_repairable(self) -> bool:
        """Whether `run --repair` can repair it."""
        return bool(self.moved_files) or self.new_text is not None
