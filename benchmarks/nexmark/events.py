"""Generate the events of the Nexmark benchmark: persons, auctions and bids of an online auction house.

The rules are those of the published benchmark: 1 person, 3 auctions and 46 bids in each 50 events; half of the bids
go to the newest auction with a round number, three in four are made by the newest person with a round number. The
same seed gives the same events, byte for byte.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

PERSONS, AUCTIONS, BIDS = 1, 3, 46
BLOCK = PERSONS + AUCTIONS + BIDS
PERSON, AUCTION, BID = 0, 1, 2
"""The values of `event_type`."""

FIRST_ID = 1000
FIRST_CATEGORY, CATEGORIES = 10, 5
HOT_EVERY = 100
"""Of so many persons or auctions, the first is the hot one (of persons that bid, the second)."""
ACTIVE_PERSONS, IN_FLIGHT = 1000, 100
"""How many of the newest persons act, and how many of the newest auctions get bids."""
LEAD = 10
"""References may be ahead by so many persons or auctions: an event may name one that comes later."""
CHANNELS = 10_000
HOT_CHANNELS = ("Google", "Facebook", "Baidu", "Apple")
SIZES = {PERSON: 200, AUCTION: 500, BID: 100}
"""The mean size of an event, in bytes: `extra` fills it up."""

# The day changes after two minutes, because several queries group by day.
START = datetime(2026, 1, 1, 23, 58, tzinfo=UTC)

PLACES = (
    ("Phoenix", "AZ"), ("Los Angeles", "CA"), ("San Francisco", "CA"), ("Boise", "ID"), ("Portland", "OR"),
    ("Bend", "OR"), ("Redmond", "WA"), ("Seattle", "WA"), ("Kent", "WA"), ("Cheyenne", "WY"),
)  # fmt: skip
GIVEN_NAMES = ("Ada", "Alan", "Barbara", "Donald", "Edsger", "Frances", "Grace", "Jim", "Leslie", "Tony")
FAMILY_NAMES = ("Allen", "Codd", "Gray", "Hopper", "Knuth", "Lamport", "Liskov", "Lovelace", "Stonebraker")
LETTERS = "abcdefghijklmnopqrstuvwxyz"

_STAMP = pa.timestamp("ms", tz="UTC")
SCHEMAS = {
    PERSON: pa.schema(
        {"id": pa.int64(), "name": pa.string(), "emailAddress": pa.string(), "creditCard": pa.string(),
         "city": pa.string(), "state": pa.string(), "extra": pa.string(), "dateTime": _STAMP}
    ),
    AUCTION: pa.schema(
        {"id": pa.int64(), "itemName": pa.string(), "description": pa.string(), "initialBid": pa.int64(),
         "reserve": pa.int64(), "expires": _STAMP, "seller": pa.int64(), "category": pa.int64(),
         "extra": pa.string(), "dateTime": _STAMP}
    ),
    BID: pa.schema(
        {"auction": pa.int64(), "bidder": pa.int64(), "price": pa.int64(), "channel": pa.string(),
         "url": pa.string(), "extra": pa.string(), "dateTime": _STAMP}
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Event:
    """One event: its type, its time, and the fields of the person, auction or bid."""

    kind: int
    at: datetime
    fields: dict[str, Any]

    def encode(self) -> bytes:
        """The event as the JSON object that goes to Kafka."""
        name = ("person", "auction", "bid")[self.kind]
        fields = {
            key: _text(value) if isinstance(value, datetime) else value for key, value in self.fields.items()
        }
        return json.dumps(
            {"event_type": self.kind, "dateTime": _text(self.at), name: fields}, separators=(",", ":")
        ).encode()


class Generator:
    """The events of one seed, at so many events per second of event time.

    `rate` is at most 1000, so that no two events have the same time in milliseconds: queries that take the first or
    the last bid then have one right answer.
    """

    def __init__(self, seed: int = 1, rate: int = 200, start: datetime = START) -> None:
        if not 1 <= rate <= 1000:
            raise ValueError(f"a rate is from 1 to 1000 events a second, not {rate}")
        self._random, self._rate, self._start = Random(seed), rate, start
        self._urls = [self._url() for _ in HOT_CHANNELS]
        self._filler = "".join(self._pick(LETTERS) for _ in range(20_000))
        self._channels: dict[int, tuple[str, str]] = {}

    def events(self, count: int) -> Iterator[Event]:
        """Yield the first `count` events, in the order of their times."""
        for number in range(count):
            block, offset = divmod(number, BLOCK)
            at = self._at(number)
            if offset < PERSONS:
                yield Event(PERSON, at, self._person(block))
            elif offset < PERSONS + AUCTIONS:
                yield Event(
                    AUCTION, at, self._auction(block, block * AUCTIONS + offset - PERSONS, at, number)
                )
            else:
                yield Event(BID, at, self._bid(block))

    def _at(self, number: int) -> datetime:
        return self._start + timedelta(milliseconds=number * 1000 // self._rate)

    def _person(self, number: int) -> dict[str, Any]:
        city, state = self._pick(PLACES)
        fields = {
            "id": FIRST_ID + number,
            "name": f"{self._pick(GIVEN_NAMES)} {self._pick(FAMILY_NAMES)}",
            "emailAddress": f"{self._word(7)}@{self._word(5)}.com",
            "creditCard": " ".join(f"{self._below(10_000):04d}" for _ in range(4)),
            "city": city,
            "state": state,
        }
        return {**fields, "extra": self._extra(PERSON, fields)}

    def _auction(self, newest_person: int, number: int, at: datetime, event: int) -> dict[str, Any]:
        is_hot = self._below(4) > 0
        seller = newest_person // HOT_EVERY * HOT_EVERY if is_hot else self._any_person(newest_person)
        # On average an auction lasts until as many further auctions as are in flight have begun.
        mean = self._at(event + IN_FLIGHT * BLOCK // AUCTIONS) - at
        length = 1 + self._below(max(1, 2 * (mean // timedelta(milliseconds=1))))
        first = self._price()
        fields = {
            "id": FIRST_ID + number,
            "itemName": self._word(20),
            "description": " ".join(self._word(12) for _ in range(10)),
            "initialBid": first,
            "reserve": first + self._price(),
            "expires": at + timedelta(milliseconds=length),
            "seller": FIRST_ID + seller,
            "category": FIRST_CATEGORY + self._below(CATEGORIES),
        }
        return {**fields, "extra": self._extra(AUCTION, fields)}

    def _bid(self, block: int) -> dict[str, Any]:
        newest = block * AUCTIONS + AUCTIONS - 1
        if self._below(2) > 0:
            auction = newest // HOT_EVERY * HOT_EVERY
        else:
            oldest = max(newest - IN_FLIGHT, 0)
            auction = oldest + self._below(newest - oldest + 1 + LEAD)
        # The second of a hundred, so that the hot bidder is not the hot seller.
        is_hot = self._below(4) > 0
        bidder = block // HOT_EVERY * HOT_EVERY + 1 if is_hot else self._any_person(block)
        channel, url = self._channel()
        fields = {
            "auction": FIRST_ID + auction,
            "bidder": FIRST_ID + bidder,
            "price": self._price(),
            "channel": channel,
            "url": url,
        }
        return {**fields, "extra": self._extra(BID, {"price": 0})}

    def _any_person(self, newest: int) -> int:
        active = min(newest + 1, ACTIVE_PERSONS)
        return newest + 1 - active + self._below(active + LEAD)

    def _channel(self) -> tuple[str, str]:
        """A name and an address: one of four for half of the bids. Nine in ten of the others have an id in theirs."""
        if self._below(2) > 0:
            which = self._below(len(HOT_CHANNELS))
            return HOT_CHANNELS[which], self._urls[which]
        number = self._below(CHANNELS)
        if number not in self._channels:
            url = self._url()
            known = f"&channel_id={(number * 2_654_435_761) % 2**31}" if self._below(10) > 0 else ""
            self._channels[number] = (f"channel-{number}", url + known)
        return self._channels[number]

    def _url(self) -> str:
        return f"https://www.nexmark.com/{self._word(5)}/{self._word(5)}/{self._word(5)}/item.htm?query=1"

    def _price(self) -> int:
        return round(10 ** (self._random.random() * 6) * 100)

    def _extra(self, kind: int, fields: dict[str, Any]) -> str:
        """Letters that bring an event to its mean size, give or take a fifth."""
        missing = SIZES[kind] - sum(len(value) if isinstance(value, str) else 8 for value in fields.values())
        if missing <= 0:
            return ""
        length = missing * 4 // 5 + self._below(max(1, missing * 2 // 5))
        begin = self._below(len(self._filler) - length)
        return self._filler[begin : begin + length]

    def _word(self, longest: int) -> str:
        return "".join(self._pick(LETTERS) for _ in range(3 + self._below(longest - 2)))

    def _pick(self, values: Any) -> Any:
        return values[self._below(len(values))]

    def _below(self, end: int) -> int:
        # `random()` alone is the same in all versions of Python.
        return int(self._random.random() * end)


def tables(events: Iterable[Event]) -> dict[str, pa.Table]:
    """The same events as tables `person`, `auction` and `bid`, each with the column `dateTime`."""
    rows: dict[int, list[dict[str, Any]]] = {kind: [] for kind in SCHEMAS}
    for event in events:
        rows[event.kind].append({**event.fields, "dateTime": event.at})
    names = {PERSON: "person", AUCTION: "auction", BID: "bid"}
    return {names[kind]: pa.Table.from_pylist(rows[kind], schema) for kind, schema in SCHEMAS.items()}


def side_input() -> pa.Table:
    """The table that query 13 looks up: every third key has a value."""
    keys = range(0, 10_000, 3)
    return pa.table({"key": pa.array(keys, pa.int64()), "value": [f"value {key}" for key in keys]})


def _text(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{at.microsecond // 1000:03d}Z"
