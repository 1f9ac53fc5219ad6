"""What each table of the e-commerce pipeline must hold, from the journal of what was produced."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow.parquet as pq
from confluent_kafka import Consumer, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

STREAMS = ("clicks", "cart_events", "purchases")
_QUARTER = timedelta(minutes=15)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PATIENCE = 120.0

Place = tuple[str, int, int]
"""Topic, partition and offset."""


class Counts(NamedTuple):
    """A row of the funnel without its window's start."""

    window_end: datetime
    click_count: int
    cart_count: int
    purchase_count: int
    conversion_rate: float | None


class Purchase(NamedTuple):
    """A row of the table of purchases without its event id."""

    user_id: str
    product_id: str
    quantity: int
    amount: float
    event_time: datetime
    category: str | None
    price: float | None
    day: date


@dataclass(frozen=True)
class Tables:
    """The funnel by window start, the purchases by event id, the places of malformed records."""

    funnel: Mapping[datetime, Counts]
    purchases: Mapping[str, Purchase]
    malformed: frozenset[Place]


def expected(journals: Iterable[Path], kafka: str, catalog: Path, prefix: str = "") -> Tables:
    """What the tables hold once all of these journals' records have been read.

    Topics are the streams' names behind `prefix`. The journal says what each record is; only the values of
    purchases are looked up in their topic.
    """
    counted: dict[str, Counter[datetime]] = {name: Counter() for name in STREAMS}
    bought: dict[Place, str] = {}
    malformed: set[Place] = set()
    for line in _lines(journals):
        stream = line["topic"].removeprefix(prefix)
        place = (line["topic"], line["partition"], line["offset"])
        match line["kind"]:
            case "malformed":
                malformed.add(place)
            case "good":
                at = datetime.fromisoformat(line["event_time"])
                counted[stream][_EPOCH + (at - _EPOCH) // _QUARTER * _QUARTER] += 1
                if stream == "purchases":
                    bought[place] = line["event_id"]
            case "duplicate":
                pass
            case other:
                raise AssertionError(f"the oracle cannot tell what happens to a record that is {other}")
    values = _values(kafka, f"{prefix}purchases") if bought else {}
    priced = {
        row["product_id"]: (row["category"], row["price"]) for row in pq.read_table(catalog).to_pylist()
    }
    return Tables(
        _funnel(counted),
        {event_id: _purchase(event_id, values[place], priced) for place, event_id in bought.items()},
        frozenset(malformed),
    )


def _lines(journals: Iterable[Path]) -> Iterable[dict[str, Any]]:
    for journal in journals:
        with journal.open(encoding="utf-8") as lines:
            yield from map(json.loads, lines)


def _funnel(counted: Mapping[str, Counter[datetime]]) -> dict[datetime, Counts]:
    funnel = {}
    for start in sorted(set().union(*counted.values())):
        clicks, carts, purchases = (counted[name][start] for name in STREAMS)
        funnel[start] = Counts(
            start + _QUARTER, clicks, carts, purchases, purchases / clicks if clicks else None
        )
    return funnel


def _purchase(event_id: str, value: bytes, priced: Mapping[str, tuple[str, float]]) -> Purchase:
    row = json.loads(value)
    assert row["event_id"] == event_id, "the journal and the topic tell of different events"
    at = datetime.fromisoformat(row["event_time"])
    category, price = priced.get(row["product_id"], (None, None))
    return Purchase(
        row["user_id"], row["product_id"], row["quantity"], row["amount"], at, category, price, at.date()
    )


def _values(kafka: str, topic: str) -> dict[Place, bytes]:
    """Every record of a topic."""
    reader = Consumer({"bootstrap.servers": kafka, "group.id": "oracle", "enable.partition.eof": False})
    try:
        partitions = reader.list_topics(topic, timeout=_PATIENCE).topics[topic].partitions
        ends = {n: reader.get_watermark_offsets(TopicPartition(topic, n), _PATIENCE)[1] for n in partitions}
        reader.assign([TopicPartition(topic, n, 0) for n in partitions])
        left, actual = sum(ends.values()), {}
        while len(actual) < left:
            batch = reader.consume(min(10_000, left - len(actual)), timeout=_PATIENCE)
            assert batch, f"topic {topic} gave {len(actual)} of {left} records"
            actual |= {(topic, message.partition(), message.offset()): message.value() for message in batch}
        return actual
    finally:
        reader.close()


def difference(wanted: Mapping[Any, Any], got: Mapping[Any, Any], name: str) -> str:
    """What differs between two tables, shortly; empty when nothing does."""
    if wanted == got:
        return ""
    absent = [key for key in wanted if key not in got]
    more = [key for key in got if key not in wanted]
    other = [key for key in wanted if key in got and wanted[key] != got[key]]
    messages = [
        f"{name}: {len(absent)} absent, {len(more)} too many, {len(other)} different of {len(wanted)}"
    ]
    messages += [f"  absent {key}: {wanted[key]}" for key in absent[:3]]
    messages += [f"  too many {key}: {got[key]}" for key in more[:3]]
    messages += [f"  different {key}: wanted {wanted[key]}, got {got[key]}" for key in other[:3]]
    return "\n".join(messages)


def differences(wanted: Tables, got: Tables) -> str:
    """What differs between all tables."""
    letters = (dict.fromkeys(tables.malformed, "malformed") for tables in (wanted, got))
    messages = (
        difference(wanted.funnel, got.funnel, "funnel"),
        difference(wanted.purchases, got.purchases, "purchases"),
        difference(*letters, "dead letters"),
    )
    return "\n".join(text for text in messages if text)
