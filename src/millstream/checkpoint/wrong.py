"""One thing that is wrong with a checkpoint: what, what it means for the sinks, and what cures it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

AFRESH = "without a copy of them, start with an empty checkpoint folder and emptied sinks"
# The cure where nothing on the disk can make up for what is lost.
COPY = (
    "put the file back from a copy of the checkpoint; without one, start with an empty checkpoint folder "
    "and emptied sinks"
)


@dataclass(frozen=True)
class Damage:
    """A file that is torn, empty or gone, and whether `run --repair` may mend it.

    `what` and `why` go together as `what: why`. It can be mended when there is something to set aside or to
    write; `cure` then says what is done, and otherwise what a person must do.
    """

    what: str
    file: Path
    why: str
    cure: str
    aside: tuple[Path, ...] = ()
    """Files that go into `_millstream/aside/`."""
    written: str | None = None
    """The text that `file` gets."""

    @property
    def mendable(self) -> bool:
        """May `run --repair` do the cure?"""
        return bool(self.aside) or self.written is not None
