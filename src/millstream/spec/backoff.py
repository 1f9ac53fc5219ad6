"""How a failed query waits before it starts again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from millstream.spec.base import Spec
from millstream.spec.duration import Duration

if TYPE_CHECKING:
    import random


class Backoff(Spec):
    """Growing waits with jitter, and an end to patience."""

    first: Duration = Duration("1 second")
    """Wait after the first failure; it doubles with each failure that follows."""
    most: Duration = Duration("1 minute")
    """No wait is longer than this."""
    give_up_after: Duration = Duration("15 minutes")
    """A query that has committed no batch for this long after its first failure is given up."""
    restarts: int = Field(default=30, ge=1)
    """A query that fails more often than this within `within` is given up, whatever it has delivered between."""
    within: Duration = Duration("10 minutes")
    """The time in which `restarts` are counted."""

    def wait(self, failures: int, chance: random.Random) -> float:
        """Seconds to wait after that many failures in a row: the doubled wait, less up to half of it.

        Jitter keeps queries that failed together from coming back together.
        """
        full = min(self.first.seconds * 2 ** min(failures - 1, 30), self.most.seconds)
        return float(full * (1 - chance.random() / 2))
