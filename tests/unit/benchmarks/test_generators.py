"""The generators of the benchmarks give the same events for the same seed, and what they count is what they send."""

from __future__ import annotations

import json
import sys
from collections import Counter
from datetime import UTC, datetime
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"


def load(name: str) -> ModuleType:
    """The module `events` of a benchmark; it is not on the path, where other modules have that name."""
    spec = spec_from_file_location(f"{name}_events", BENCHMARKS / name / "events.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


NEXMARK, YSB = load("nexmark"), load("ysb")


def test_a_seed_gives_the_same_nexmark_events_each_time() -> None:
    first, again, other = (
        [event.encode() for event in NEXMARK.Generator(seed).events(500)] for seed in (1, 1, 2)
    )

    assert first == again
    assert first != other


def test_nexmark_has_a_person_three_auctions_and_46_bids_of_fifty_events() -> None:
    events = list(NEXMARK.Generator().events(500))

    assert Counter(event.kind for event in events) == {
        NEXMARK.PERSON: 10, NEXMARK.AUCTION: 30, NEXMARK.BID: 460,
    }  # fmt: skip
    assert len({event.at for event in events}) == 500, "the last bid would not be one bid"


def test_half_of_the_bids_of_nexmark_are_for_an_auction_with_a_round_number() -> None:
    bids = [event.fields for event in NEXMARK.Generator().events(20_000) if event.kind == NEXMARK.BID]

    hot = sum(bid["auction"] % NEXMARK.HOT_EVERY == 0 for bid in bids)
    by_hot = sum(bid["bidder"] % NEXMARK.HOT_EVERY == 1 for bid in bids)
    assert 0.48 < hot / len(bids) < 0.53
    assert 0.73 < by_hot / len(bids) < 0.78


def test_the_views_that_the_ad_events_count_are_those_that_they_send() -> None:
    generator = YSB.AdEvents(seed=3, rate=50)
    campaigns = dict(generator.ads)

    events = [json.loads(event) for event in generator.events(1500)]

    views: Counter[tuple[str, datetime]] = Counter()
    for event in events:
        if event["event_type"] == "view":
            at = datetime.fromisoformat(event["event_time"]).astimezone(UTC)
            views[campaigns[event["ad_id"]], at.replace(second=at.second // 10 * 10, microsecond=0)] += 1
    assert len({start for _, start in views}) == 3
    assert generator.counts == views
