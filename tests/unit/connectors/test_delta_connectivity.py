"""What a Delta table says when it is asked, without Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from millstream.connectors import registry
from millstream.connectors.api.values.connectivity import CheckpointedSource
from millstream.connectors.delta.commit.column_casts import (
    TYPE_WIDENING,
    describe_key_loss,
    describe_loss,
    is_widened,
)
from millstream.diagnostics.failure import NotReady
from millstream.spec.location import Location
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from pathlib import Path

ROWS = pa.table({"id": ["a", "b"], "n": pa.array([1, 2], pa.int64())})
COLUMNS = {"id": "string", "n": "bigint"}


@pytest.fixture
def place(tmp_path: Path) -> Location:
    """A table of two columns, at version 0."""
    where = Location(tmp_path / "table")
    write_deltalake(str(where), ROWS)
    return where


def of_source(
    place: Location, begun: tuple[CheckpointedSource, ...] = (), *, static: bool = False, **settings: Any
) -> list[str]:
    source = registry.sources()["delta"](path=place, **settings)
    return [finding.code for finding in source.ask(static=static, checkpoints=begun, fresh=())]


def of_sink(place: Location, columns: dict[str, str] | None = None, **settings: Any) -> list[tuple[str, str]]:
    sink = registry.sinks()["delta"](path=place, **settings)
    return [(finding.code, finding.message) for finding in sink.ask(columns or COLUMNS, OutputMode.APPEND)]


def test_a_table_as_it_should_be_gives_nothing(place: Location) -> None:
    assert (
        of_source(place, (CheckpointedSource("q", {"table_id": str(DeltaTable(str(place)).metadata().id)}),))
        == []
    )
    assert of_sink(place, merge_on=("id",)) == []


def test_a_table_that_is_not_there_is_not_ready_to_be_read(tmp_path: Path) -> None:
    with pytest.raises(NotReady, match="there is no Delta table"):
        of_source(Location(tmp_path / "nowhere"))


def test_a_table_that_a_sink_will_make_need_not_be_there(tmp_path: Path) -> None:
    assert of_sink(Location(tmp_path / "table")) == []


def test_a_table_that_was_made_anew_is_told(place: Location) -> None:
    assert of_source(place, (CheckpointedSource("q", {"table_id": "another"}),)) == ["MS564"]


def test_a_version_that_is_not_there_is_told(place: Location) -> None:
    assert of_source(place, starting_version=3) == ["MS566"]
    assert of_source(place, static=True, version=3) == ["MS566"]


def test_a_table_that_is_changed_in_place_cannot_be_streamed(place: Location) -> None:
    DeltaTable(str(place)).delete("n = 1")

    assert of_source(place) == ["MS574"]
    assert of_source(place, skip_change_commits=True) == []
    assert of_source(place, change_feed=True) == []
    assert of_source(place, static=True) == []


def test_a_column_that_the_table_lacks_is_told(place: Location) -> None:
    sink = of_sink(place, {**COLUMNS, "more": "int"})

    assert sink == [("MS568", f"Delta table {place} has no column 'more'")]


def test_a_column_that_may_be_added_is_right(place: Location) -> None:
    assert of_sink(place, {**COLUMNS, "more": "int"}, merge_schema=True) == []


def test_a_column_of_another_type_is_told(place: Location) -> None:
    sink = of_sink(place, {"id": "string", "n": "timestamp"})

    assert sink == [
        ("MS568", f"column 'n' of Delta table {place} is bigint, but the query's column is timestamp")
    ]


@pytest.mark.parametrize("given", ["int", "double", "string", "timestamp"])
def test_an_append_takes_a_columns_own_type_only(place: Location, given: str) -> None:
    assert [code for code, _ in of_sink(place, {"id": "string", "n": given})] == ["MS568"]


@pytest.mark.parametrize("given", ["int", "decimal(10,0)", "boolean"])
def test_a_merge_casts_numbers(place: Location, given: str) -> None:
    assert of_sink(place, {"id": "string", "n": given}, merge_on=("id",)) == []


@pytest.mark.parametrize("given", ["double", "decimal(10,2)", "timestamp"])
def test_a_merge_that_would_lose_a_part_of_each_value_is_told(place: Location, given: str) -> None:
    assert [code for code, _ in of_sink(place, {"id": "string", "n": given}, merge_on=("id",))] == ["MS568"]


def test_a_merge_that_may_widen_the_columns_type_loses_nothing(place: Location) -> None:
    settings: dict[str, Any] = {"merge_on": ("id",), "merge_schema": True}
    columns = {"id": "string", "n": "decimal(22,2)"}
    assert [code for code, _ in of_sink(place, columns, **settings)] == ["MS568"]

    DeltaTable(str(place)).alter.set_table_properties({TYPE_WIDENING: "true"}, raise_if_not_exists=False)

    assert of_sink(place, columns, **settings) == []
    # Delta does not widen a bigint to a double.
    assert [code for code, _ in of_sink(place, {"id": "string", "n": "double"}, **settings)] == ["MS568"]


@pytest.mark.parametrize(
    ("column", "value", "widened"),
    [
        ("int", "double", True),
        ("bigint", "double", False),
        ("int", "float", False),
        ("date", "timestamp_ntz", True),
        ("date", "timestamp", False),
        ("int", "decimal(12,2)", True),
        ("int", "decimal(11,2)", False),
        ("bigint", "decimal(22,2)", True),
        ("decimal(9,2)", "decimal(10,3)", True),
        ("decimal(9,2)", "decimal(9,3)", False),
        ("decimal(9,2)", "double", False),
        ("boolean", "decimal(38,2)", False),
    ],
)
def test_only_a_type_with_room_for_the_values_is_widened(column: str, value: str, *, widened: bool) -> None:
    assert is_widened(column, value) is widened


@pytest.mark.parametrize(
    ("column", "value", "loss"),
    [
        ("bigint", "int", ""),
        ("int", "bigint", ""),
        ("double", "float", ""),
        ("double", "bigint", ""),
        ("float", "double", "digits are lost"),
        ("int", "float", "decimal places are lost"),
        ("int", "decimal(9,0)", ""),
        ("int", "decimal(9,2)", "decimal places are lost"),
        ("decimal(9,2)", "decimal(12,2)", ""),
        ("decimal(9,2)", "decimal(9,3)", "decimal places after 2 are lost"),
        ("decimal(9,2)", "double", "decimal places after 2 are lost"),
        ("boolean", "int", "every number but 0 becomes true"),
        ("int", "boolean", ""),
        ("date", "timestamp", "the time of day is lost"),
        ("timestamp", "date", ""),
        ("bigint", "timestamp", "fractions of a second are lost"),
        ("string", "timestamp", ""),
        ("struct", "struct<a:double>", ""),
    ],
)
def test_a_cast_loses_nothing_or_is_told(column: str, value: str, loss: str) -> None:
    assert describe_loss(column, value) == loss


@pytest.mark.parametrize(
    ("column", "value", "exact"),
    [
        ("double", "bigint", 15),
        ("double", "decimal(16,2)", 15),
        ("double", "decimal(15,2)", None),
        ("double", "int", None),
        ("float", "int", 6),
        ("float", "bigint", 6),
        ("float", "decimal(7,0)", 6),
        ("float", "smallint", None),
        ("bigint", "decimal(38,0)", None),
        ("double", "string", None),
    ],
)
def test_keys_with_more_digits_than_a_floating_point_number_may_become_equal(
    column: str, value: str, exact: int | None
) -> None:
    expected = "" if exact is None else f"keys of more than {exact} digits may become equal"

    assert describe_key_loss(column, value) == expected


def test_a_merge_after_whose_cast_two_keys_may_be_equal_is_an_error(tmp_path: Path) -> None:
    place, types = Location(tmp_path / "table"), {"id": "bigint", "n": "bigint"}
    write_deltalake(str(place), pa.table({"id": [1.0], "n": [1.0]}))

    assert of_sink(place, types, merge_on=("ID",)) == [
        ("MS568", f"column 'id' of Delta table {place} is double, but the query's column is bigint")
    ]
    assert of_sink(place, {**types, "id": "int"}, merge_on=("id",)) == []


def test_a_text_that_a_merge_casts_may_be_no_number(place: Location) -> None:
    sink = registry.sinks()["delta"](path=place, merge_on=("id",))

    values = [
        finding.severity.value for finding in sink.ask({"id": "string", "n": "string"}, OutputMode.UPDATE)
    ]

    assert values == ["warning"]


def test_a_folder_of_other_files_is_no_table(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")

    assert [code for code, _ in of_sink(Location(tmp_path))] == ["MS567"]
