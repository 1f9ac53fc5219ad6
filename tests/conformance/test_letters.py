"""What every place of dead letters must do, for every kind in the registry."""

from __future__ import annotations

import itertools
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import psycopg
import pyarrow as pa
import pytest

from millstream.connectors import registry
from millstream.connectors.api.dead_letters import COLUMNS, DeadLetter, DeadLetterWriter, read_unique
from millstream.connectors.api.values.dead_letter_rows import SCHEMA
from millstream.connectors.api.writer import SinkIdentity
from millstream.connectors.postgres import dead_letter_table
from millstream.diagnostics.failure import CheckpointError
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from millstream.connectors.api.dead_letters import DeadLetterStore
    from millstream.devstack.supervisor.state import Endpoints

pytestmark = pytest.mark.usefixtures("interpreted", "small_batches")

KINDS = list(registry.dead_letter_stores())
_count = itertools.count()
NOON = datetime(2026, 1, 1, 12, 0, 0, 123456, tzinfo=UTC)
FULL: dict[str, Any] = {
    "query": "copy",
    "source": "orders",
    "topic": "orders",
    "partition": 3,
    "offset": 7,
    "file": None,
    "timestamp": NOON - timedelta(days=1),
    "key": b"\xfe\x00k",
    "value": b'\xff{"id":\x00',
    "headers": [{"key": "trace ü", "value": b"\xff1"}, {"key": "none", "value": None}],
    "reason": "the value is not UTF-8: 'ż'",
    "batch_id": 0,
    "at": NOON,
    "expectation": None,
}
BARE: dict[str, Any] = {
    **FULL,
    "source": "paid",
    **dict.fromkeys(("topic", "partition", "offset", "timestamp", "key", "headers")),
    "value": b'{"id":1}',
    "reason": "expected amount > 0",
    "expectation": "positive",
    "at": NOON + timedelta(hours=1),
}


@pytest.fixture
def make(stack: Endpoints, tmp_path: Path) -> Callable[[str], DeadLetterStore]:
    """A fresh place of a kind."""

    def create_store(kind: str) -> DeadLetterStore:
        name = f"letters_{next(_count)}_{tmp_path.name[-6:]}"
        settings = {
            "delta": {"path": str(tmp_path / name)},
            "postgres": {"url": stack.postgres, "table": name, "ledger_schema": name},
            "kafka": {"bootstrap_servers": stack.kafka, "topic": name, "ledger_topic": f"{name}_ledger"},
        }
        return registry.dead_letter_stores()[kind].model_validate(settings[kind])

    return create_store


@pytest.fixture
def keepers() -> Iterator[Callable[[DeadLetterStore, SparkSession], DeadLetterWriter]]:
    """Opens keepers of one query, which are closed at the end."""
    writers: list[DeadLetterWriter] = []

    def opened(box: DeadLetterStore, spark: SparkSession) -> DeadLetterWriter:
        identity = SinkIdentity("shop", "copy", "one-checkpoint", "dead_letters", OutputMode.APPEND)
        writers.append(box.keeper(identity))
        writers[-1].open(spark)
        return writers[-1]

    yield opened
    for writer in writers:
        writer.close()


def keep(keeper: DeadLetterWriter, spark: SparkSession, batch: int, *letters: dict[str, Any]) -> None:
    rows = [{**letter, "batch_id": batch} for letter in letters]
    keeper.keep(spark.createDataFrame(pa.Table.from_pylist(rows, schema=SCHEMA), COLUMNS), batch, 1000)


def keep_rows(keeper: DeadLetterWriter, spark: SparkSession, batch: int, *letters: dict[str, Any]) -> None:
    """Write letters that are in the driver's memory."""
    rows = [{**letter, "batch_id": batch} for letter in letters]
    keeper.keep_rows(spark, pa.Table.from_pylist(rows, schema=SCHEMA), batch)


def keep_rows_by_frame(
    keeper: DeadLetterWriter, spark: SparkSession, batch: int, *letters: dict[str, Any]
) -> None:
    """Write letters that are in the driver's memory as a kind does that needs Spark for them."""
    rows = [{**letter, "batch_id": batch} for letter in letters]
    DeadLetterWriter.keep_rows(keeper, spark, pa.Table.from_pylist(rows, schema=SCHEMA), batch)


WAYS = pytest.mark.parametrize(
    "way", [keep, keep_rows, keep_rows_by_frame], ids=["frame", "rows", "rows by frame"]
)


@WAYS
@pytest.mark.parametrize("kind", KINDS)
def test_a_letter_is_read_as_it_was_kept(
    kind: str, way: Any, make: Any, keepers: Any, spark: SparkSession
) -> None:
    box = make(kind)

    way(keepers(box, spark), spark, 0, FULL, BARE)

    remaining = [
        {field.name: getattr(letter, field.name) for field in fields(DeadLetter)}
        for letter in read_unique(box)
    ]
    assert remaining == [FULL, BARE]


@pytest.mark.parametrize("kind", KINDS)
def test_the_newest_letters_come_first_and_all_are_counted(
    kind: str, make: Any, keepers: Any, spark: SparkSession
) -> None:
    box = make(kind)
    keeper = keepers(box, spark)
    for number in range(3):
        keep(keeper, spark, number, {**FULL, "offset": number, "at": NOON + timedelta(seconds=number)})
    keep(keeper, spark, 3, BARE)

    assert [item.source for item in box.latest(1)] == ["paid"]
    assert [item.offset for item in box.latest(2, ["orders"])] == [2, 1]
    assert len(box.latest(10)) == 4
    orders, paid = ("copy", "orders", FULL["reason"]), ("copy", "paid", BARE["reason"])
    assert box.counts() == {orders: 3, paid: 1}
    assert box.counts(NOON + timedelta(seconds=1)) == {orders: 1}


def test_of_fifty_thousand_letters_in_postgres_no_more_than_asked_for_are_loaded(
    make: Any, keepers: Any, spark: SparkSession, stack: Endpoints, monkeypatch: pytest.MonkeyPatch
) -> None:
    box = make("postgres")
    keep(keepers(box, spark), spark, 0, FULL)
    names = ", ".join(f'"{field.name}"' for field in fields(DeadLetter) if field.name != "offset")
    with psycopg.connect(stack.postgres) as connection:
        connection.execute(
            f'INSERT INTO {box.table} ({names}, "offset") SELECT {names}, n FROM {box.table}, '
            "generate_series(100, 50099) n"
        )
    loaded: list[Any] = []
    monkeypatch.setattr(
        dead_letter_table, "_parse_dead_letter", lambda row: loaded.append(row) or DeadLetter(*row[:13])
    )

    actual = box.latest(20)

    assert (len(loaded), [item.offset for item in actual]) == (20, list(range(50099, 50079, -1)))


@WAYS
@pytest.mark.parametrize("kind", ["delta", "postgres"])
def test_a_nul_in_a_headers_name_is_kept(
    kind: str, way: Any, make: Any, keepers: Any, spark: SparkSession
) -> None:
    box = make(kind)

    way(keepers(box, spark), spark, 0, {**FULL, "headers": [{"key": "tr\x00ace", "value": b"1"}]})

    assert read_unique(box)[0].headers == [{"key": "tr\x00ace", "value": b"1"}]


@WAYS
@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_that_comes_again_adds_nothing(
    kind: str, way: Any, make: Any, keepers: Any, spark: SparkSession
) -> None:
    box = make(kind)
    keep(keepers(box, spark), spark, 0, BARE)

    way(keepers(box, spark), spark, 0, BARE)

    assert len(read_unique(box)) == 1


@pytest.mark.parametrize("ways", [(keep, keep_rows), (keep_rows, keep)], ids=["frame first", "rows first"])
@pytest.mark.parametrize("kind", KINDS)
def test_batches_of_both_ways_are_in_one_place(
    kind: str, ways: tuple[Any, Any], make: Any, keepers: Any, spark: SparkSession
) -> None:
    box = make(kind)
    keeper = keepers(box, spark)

    ways[0](keeper, spark, 0, FULL)
    ways[1](keeper, spark, 1, {**FULL, "offset": 8})

    first, second = read_unique(box)
    assert replace(second, batch_id=0, offset=7) == first


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_kept_before_the_first_letter(kind: str, make: Any) -> None:
    assert read_unique(make(kind)) == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_purge_takes_what_was_set_aside_before_a_time_and_leaves_the_rest(
    kind: str, make: Any, keepers: Any, spark: SparkSession
) -> None:
    box = make(kind)
    keeper = keepers(box, spark)
    keep(keeper, spark, 0, FULL)
    keep(keeper, spark, 1, BARE)

    stay = box.purge(NOON + timedelta(minutes=1), None)

    assert (stay, [dead_letter.source for dead_letter in read_unique(box)]) == (0, ["paid"])


@pytest.mark.parametrize("kind", KINDS)
def test_of_what_was_sent_again_only_records_of_topics_that_were_read_are_deleted(
    kind: str, make: Any, keepers: Any, spark: SparkSession
) -> None:
    box = make(kind)
    keeper = keepers(box, spark)
    refused = {**FULL, **dict.fromkeys(("topic", "partition", "offset"))}
    keep(keeper, spark, 0, FULL)
    (read,) = read_unique(box)
    keep(keeper, spark, 1, {**FULL, "offset": 8, "at": NOON - timedelta(microseconds=1)}, refused)

    assert box.delete_sent("paid", {"copy": [read.at]}) == 0
    assert box.delete_sent("orders", {"another": [read.at]}) == 0
    assert len(read_unique(box)) == 3
    assert box.delete_sent("orders", {"another": [NOON - timedelta(days=1)], "copy": [read.at]}) == 0

    assert sorted((letter.offset or 0, letter.at) for letter in read_unique(box)) == [
        (0, NOON), (8, NOON - timedelta(microseconds=1)),
    ]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_that_comes_again_after_a_purge_adds_nothing(
    kind: str, make: Any, keepers: Any, spark: SparkSession
) -> None:
    box = make(kind)
    keep(keepers(box, spark), spark, 0, FULL)
    box.purge(None, None)

    keep(keepers(box, spark), spark, 0, FULL)

    assert read_unique(box) == []


@WAYS
@pytest.mark.parametrize("kind", ["postgres", "kafka"])
def test_a_run_that_was_overtaken_keeps_nothing_more(
    kind: str, way: Any, make: Any, keepers: Any, spark: SparkSession
) -> None:
    box = make(kind)
    before = keepers(box, spark)
    after = keepers(box, spark)

    with pytest.raises(CheckpointError):
        way(before, spark, 0, FULL)
    way(after, spark, 0, FULL)

    assert len(read_unique(box)) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_a_place_that_is_not_there_yet_is_ready(kind: str, make: Any) -> None:
    make(kind).probe()
