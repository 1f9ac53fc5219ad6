"""Backoff: how long a failed query waits before it starts again, and when it gives up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from millstream.spec.base import Spec
from millstream.spec.duration import Duration

if TYPE_CHECKING:
    import random


class Backoff(Spec):
    """How a failed query is restarted: exponential backoff with jitter, and the limits for giving up."""

    first: Duration = Duration("1 second")
    """The wait after the first failure; each further failure doubles the wait."""
    most: Duration = Duration("1 minute")
    """The longest wait."""
    give_up_after: Duration = Duration("15 minutes")
    """The query is not restarted any more if, for this long since its first failure, it has neither committed a batch
    nor found its sources without new rows."""
    restarts: int = Field(default=30, ge=1)
    """The query is not restarted any more if it fails more often than this in the time `within`, even if batches
    succeed in between."""
    within: Duration = Duration("10 minutes")
    """The time in which `restarts` are counted."""

    def wait(self, failures: int, chance: random.Random) -> float:
        """Return the seconds to wait after `failures` failures in a row: the doubled wait, less up to half of it.

        Jitter prevents queries that failed together from restarting together.
        """
        longest = min(self.first.seconds * 2 ** min(failures - 1, 30), self.most.seconds)
        return float(longest * (1 - chance.random() / 2))
