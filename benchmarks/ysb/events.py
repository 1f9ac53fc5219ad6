"""Generate the events of the Yahoo streaming benchmark: views, clicks and purchases of ads, as JSON.

A hundred campaigns have ten ads each. The same seed gives the same events, byte for byte; what a right program counts
is added up on the way.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

CAMPAIGNS, ADS_EACH = 100, 10
AD_TYPES = ("banner", "modal", "sponsored-search", "mail", "mobile")
EVENT_TYPES = ("view", "click", "purchase")
WINDOW = timedelta(seconds=10)
START = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class AdEvents:
    """The events of one seed, `rate` of them per second of event time."""

    seed: int = 1
    rate: int = 10_000
    counts: Counter[tuple[str, datetime]] = field(default_factory=Counter)
    """Views by campaign and start of their ten seconds, of the events so far."""

    def __post_init__(self) -> None:
        self._random = Random(self.seed)
        self.ads = [
            (self._uuid(), f"campaign-{number // ADS_EACH:03}") for number in range(CAMPAIGNS * ADS_EACH)
        ]
        """Each ad's id and its campaign."""
        # Users and pages only have to differ and to take their space.
        self._users = [self._uuid() for _ in range(1000)]
        self._pages = [self._uuid() for _ in range(100)]

    def events(self, count: int) -> Iterator[bytes]:
        """Yield the first `count` events, in the order of their times."""
        random, ads, per_second = self._random.random, self.ads, self.rate
        for number in range(count):
            second, part = divmod(number, per_second)
            at = START + timedelta(seconds=second)
            ad, campaign = ads[int(random() * len(ads))]
            kind = EVENT_TYPES[int(random() * 3)]
            if kind == "view":
                self.counts[campaign, at - timedelta(seconds=second % 10)] += 1
            yield (
                f'{{"user_id":"{self._users[int(random() * 1000)]}","page_id":"{self._pages[int(random() * 100)]}",'
                f'"ad_id":"{ad}","ad_type":"{AD_TYPES[int(random() * 5)]}","event_type":"{kind}",'
                f'"event_time":"{at:%Y-%m-%dT%H:%M:%S}.{part * 1000 // per_second:03}Z","ip_address":"10.0.0.1"}}'
            ).encode()

    def _uuid(self) -> str:
        number = f"{int(self._random.random() * 2**52):013x}{int(self._random.random() * 2**52):013x}000000"
        return f"{number[:8]}-{number[8:12]}-{number[12:16]}-{number[16:20]}-{number[20:32]}"
