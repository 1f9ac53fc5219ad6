"""Tables and rows that may be merged without Spark, and those that may not."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake.exceptions import DeltaError
from pyspark.sql.types import StructType

from millstream.connectors.delta.commit import small_merge
from millstream.connectors.delta.commit.small_merge import MergeOutcome, SmallMerge

if TYPE_CHECKING:
    from pathlib import Path


def columns(**types: Any) -> StructType:
    """Columns with Spark's JSON types."""
    fields = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in types.items()]
    return StructType.fromJson({"type": "struct", "fields": fields})


COLUMNS = columns(id="long", text="string")
ITEMS = {"type": "array", "elementType": "integer", "containsNull": True}


class Table:
    """A Delta table as delta-rs shows it."""

    def __init__(self, **changes: Any) -> None:
        values: dict[str, Any] = {
            "reader": 1,
            "writer": 2,
            "features": None,
            "partitions": [],
            "properties": {},
            "bytes": 1,
        }
        self.values = {**values, "fields": COLUMNS.jsonValue()["fields"], **changes}

    def protocol(self) -> Any:
        features = self.values["features"]
        return SimpleNamespace(
            min_reader_version=self.values["reader"],
            min_writer_version=self.values["writer"],
            writer_features=features,
            reader_features=None,
        )

    def metadata(self) -> Any:
        return SimpleNamespace(
            partition_columns=self.values["partitions"], configuration=self.values["properties"]
        )

    def schema(self) -> Any:
        return SimpleNamespace(to_json=lambda: json.dumps({"fields": self.values["fields"]}))

    def get_add_actions(self, *, flatten: bool) -> pa.Table:
        assert flatten
        return pa.table({"size_bytes": [self.values["bytes"]]})


def field(**changes: Any) -> list[dict[str, Any]]:
    """The columns, the last of which is another one."""
    first, last = COLUMNS.jsonValue()["fields"]
    return [first, {**last, **changes}]


@pytest.mark.parametrize(
    "table",
    [
        Table(),
        Table(writer=7, features=["appendOnly", "invariants"]),
        Table(properties={"delta.appendOnly": "false", "delta.checkpointInterval": "20", "owner": "shop"}),
        Table(fields=field(metadata={"spark.watermarkDelayMs": 1000, "comment": "said"})),
    ],
)
def test_a_plain_table_is_fit(table: Any) -> None:
    assert small_merge.unfitness(table, COLUMNS) == ""


@pytest.mark.parametrize(
    "table",
    [
        Table(reader=3, writer=7, features=["deletionVectors"]),
        Table(reader=2, writer=5),
        *(
            Table(writer=7, features=[feature])
            for feature in (
                "changeDataFeed", "columnMapping", "checkConstraints", "generatedColumns", "identityColumns",
                "typeWidening", "rowTracking", "domainMetadata", "clustering", "inCommitTimestamp",
                "icebergCompatV1", "one that does not exist yet",
            )
        ),
        Table(writer=4),
        Table(partitions=["text"]),
        Table(properties={"delta.appendOnly": "true"}),
        Table(properties={"delta.constraints.positive": "id > 0"}),
        Table(properties={"delta.dataSkippingStatsColumns": "id"}),
        Table(fields=field(nullable=False)),
        Table(fields=field(metadata={"delta.generationExpression": "upper(x)"})),
        Table(fields=field(metadata={"delta.invariants": "{}"})),
        Table(fields=field(metadata={"CURRENT_DEFAULT": "'x'"})),
        Table(fields=field(metadata={"__CHAR_VARCHAR_TYPE_STRING": "char(3)"})),
        Table(fields=field(type="integer")),
        Table(fields=field(name="Text")),
        Table(fields=[*field(), {**field()[0], "name": "more"}]),
        Table(bytes=small_merge.MOST_TABLE_BYTES + 1),
    ],
)  # fmt: skip
def test_a_table_that_delta_rs_might_write_differently_is_unfit(table: Any) -> None:
    assert small_merge.unfitness(table, COLUMNS)


@pytest.mark.parametrize("step", ["DeltaTable", "unfitness"])
def test_a_table_that_delta_rs_cannot_read_is_left_to_spark(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise DeltaError("a type that it does not know")

    monkeypatch.setattr(small_merge, "DeltaTable", lambda _: Table())
    monkeypatch.setattr(small_merge, step, fail)
    rows = pa.table({"id": pa.array([1], pa.int64()), "text": ["a"]})
    commit_options = {"txnAppId": "writer", "txnVersion": "0", "userMetadata": "{}"}

    outcome = SmallMerge(tmp_path, ["id"], "gone", "false").commit(rows, COLUMNS, commit_options)

    assert outcome is MergeOutcome.UNFIT


@pytest.mark.parametrize(
    ("types", "keys", "is_plain"),
    [
        ({"id": "long", "at": "timestamp", "ratio": "double", "price": "decimal(10,2)"}, ["id", "at"], True),
        ({"ratio": "double"}, ["ratio"], False),
        ({"price": "decimal(10,2)"}, ["price"], False),
        ({"id": "long", "items": ITEMS}, ["id"], False),
        ({"id": "long", "at": "timestamp_ntz"}, ["id"], False),
        ({"id": "long", "a b": "integer"}, ["id"], False),
    ],
)
def test_columns_are_plain_if_both_write_and_compare_them_alike(
    types: dict[str, Any], keys: list[str], is_plain: bool
) -> None:
    assert small_merge._has_plain_columns(columns(**types), keys) is is_plain


def at(microseconds: int) -> datetime:
    return datetime(2026, 1, 1, microsecond=microseconds, tzinfo=UTC)


@pytest.mark.parametrize(
    ("ids", "times", "is_unique"),
    [
        ([1, 1], [at(1000), at(2000)], True),
        ([1, 1], [at(1000), at(1000)], False),
        ([1, None], [at(1000), at(2000)], False),
        ([1, 2], [at(1000), at(2001)], False),
        ([], [], True),
    ],
)
def test_keys_are_unique_known_and_in_milliseconds(ids: list[Any], times: list[Any], is_unique: bool) -> None:
    rows = pa.table({"id": pa.array(ids, pa.int64()), "at": pa.array(times, pa.timestamp("us", "UTC"))})
    assert small_merge._has_unique_keys(rows, ["id", "at"]) is is_unique


def test_a_time_before_1970_is_in_milliseconds_too() -> None:
    rows = pa.table({"at": pa.array([-1001, -2000], pa.timestamp("us", "UTC"))})
    assert not small_merge._has_unique_keys(rows, ["at"])
    assert small_merge._has_unique_keys(rows.slice(1), ["at"])
