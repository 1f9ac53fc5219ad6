import json
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from textwrap import indent
from typing import Any

from millstream.testing.files import serializer
from millstream.testing.files.loader import Suite, load_text
from millstream.testing.model import Case, Crash, Feed, Record, Restart
from millstream.testing.shuffle.export_test import export_split
from millstream.testing.shuffle.shuffle import shuffle
from millstream.testing.shuffle.splits import Item, SplitBatch
from millstream.testing.shuffle.trial import TrialResult
from unit.testing.shuffle.simulated import World, batchwise, case

SPEC = """
pipeline:
  name: shop
  sources:
    clicks:
      kafka: {bootstrap_servers: "localhost:9092", subscribe: clicks}
      schema: {at: int, n: int, word: string, moment: timestamp}
    prices:
      parquet: prices
      static: true
      schema: {word: string}
  queries:
    counts: {from: clicks, to: {memory: counts}}
tests:
"""


def test_a_kept_split_expects_what_is_right_where_it_went_wrong() -> None:
    world: Any = World(case(1, 2), batchwise)
    failure = shuffle(world, world.play, 10, 1).failure
    assert failure is not None

    text = export_split(world.case, world.items, failure.trial, {})

    assert text.splitlines()[0] == '"windows are counted, in 2 batches":'
    assert text.count("expect:") == 2
    assert text.index('- {begin: 0, "n": 1}') < text.index('- {begin: 0, "n": 2}')


def read(text: str) -> Suite:
    return load_text("test.yml", SPEC + indent(text, "  "), Path("test.yml"), lambda _: {})


def of(split: tuple[SplitBatch, ...], *fed: Any, **more: Any) -> tuple[Case, str]:
    """A case of one feed, and its split as text."""
    suite = read("one: {steps: [{feed: {clicks: []}}]}")
    text = replace(suite.cases[0], **more)
    items = tuple(Item(at, "clicks", "", row) for at, row in enumerate(fed))
    trial_result: Any = TrialResult(split, None, None)  # type: ignore[arg-type]
    return text, export_split(text, items, trial_result, {})


def test_what_is_kept_is_read_back_as_the_same_steps() -> None:
    records = (
        {"at": 1, "n": None, "word": "no"},
        {"word": "1e3"},
        {"word": "costs $5, ${late}"},
        {"word": 'a "b": {c}\n# d', "moment": "2026-01-01 12:00:00"},
        Record(
            b"{broken", key=b"k", topic="clicks", partition=3, offset=7, headers=(("h", None), ("h", b"v"))
        ),
        Record(b"\xff\x00", timestamp=datetime(2026, 1, 1, tzinfo=UTC)),
        Record(None),
    )
    split = (
        SplitBatch((0, 1, 2)),
        SplitBatch((3, 4), has_restart=True),
        SplitBatch((5, 6), crash="after_sink"),
    )

    _, text = of(split, *records)
    suite = read(text)

    assert suite.findings == ()
    assert [step.actions for step in suite.cases[0].steps] == [
        (Feed({"clicks": records[:3]}),),
        (Restart(), Feed({"clicks": records[3:5]})),
        (Feed({"clicks": records[5:]}), Crash("after_sink")),
    ]


def test_clock_and_static_rows_are_kept() -> None:
    now = datetime(2026, 1, 1, 12, tzinfo=UTC)

    _, text = of((SplitBatch((0,)),), {"at": 1}, now=now, static={"prices": ({"word": "$"},)})
    suite = read(text)

    assert suite.findings == ()
    assert suite.cases[0].now == now
    assert suite.cases[0].static == {"prices": ({"word": "$"},)}


def test_values_of_spark_become_values_of_a_test_file() -> None:
    row = {
        "time": datetime(2026, 1, 1, 12, tzinfo=UTC),
        "day": date(2026, 1, 1),
        "price": Decimal("2.50"),
        "bytes": bytearray(b"\xff"),
        "odd": [float("nan"), float("inf"), -float("inf")],
        "map": {1: "a"},
    }

    assert json.loads(json.dumps(serializer.serialize_row(row))) == {
        "time": "2026-01-01 12:00:00",
        "day": "2026-01-01",
        "price": "2.50",
        "bytes": "/w==",
        "odd": ["NaN", "Infinity", "-Infinity"],
        "map": {"1": "a"},
    }
