"""Settings of change data that cannot work, found without asking anybody."""

from __future__ import annotations

from typing import Any

import pytest

from millstream.connectors import registry
from millstream.connectors.api.cdc import Cdc
from millstream.spec.output_mode import OutputMode

PLACES: dict[str, dict[str, Any]] = {
    "delta": {"path": "lake/t"},
    "postgres": {"url": "postgresql://localhost/shop", "table": "t"},
}
CDC = {"keys": "id", "sequence_by": "lsn"}


def problems(kind: str, mode: OutputMode = OutputMode.APPEND, **fields: Any) -> list[str | None]:
    sink = registry.sinks()[kind].model_validate(PLACES[kind] | {"cdc": CDC} | fields)
    return [problem.field for problem in sink.problems(mode)]


@pytest.mark.parametrize("kind", PLACES)
def test_a_key_and_a_sequence_are_enough(kind: str) -> None:
    assert problems(kind) == []


def test_the_second_type_keeps_the_history_of_a_key() -> None:
    latest, history = (Cdc.model_validate(CDC | {"stored_as_scd_type": number}) for number in (1, 2))

    assert (latest.has_history, history.has_history) == (False, True)


@pytest.mark.parametrize("kind", PLACES)
@pytest.mark.parametrize("mode", [OutputMode.UPDATE, OutputMode.COMPLETE])
def test_states_are_no_changes(kind: str, mode: OutputMode) -> None:
    assert problems(kind, mode) == ["cdc"]


@pytest.mark.parametrize("kind", PLACES)
def test_there_is_one_way_to_say_what_becomes_of_a_row(kind: str) -> None:
    assert problems(kind, merge_on="id") == ["merge_on"]
    assert problems(kind, delete_when="op = 'd'") == ["delete_when"]


@pytest.mark.parametrize("kind", PLACES)
@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"keys": []}, "cdc.keys"),
        ({"keys": ["id", "id"]}, "cdc.keys"),
        ({"keys": ["id", "lsn"]}, "cdc.sequence_by"),
        ({"except_column_list": ["op", "lsn"]}, "cdc.except_column_list"),
        ({"except_column_list": "id"}, "cdc.except_column_list"),
    ],
)
def test_what_the_table_needs_is_asked_for(kind: str, wrong: dict[str, Any], field: str) -> None:
    assert problems(kind, cdc=CDC | wrong) == [field]


@pytest.mark.parametrize("kind", PLACES)
def test_columns_that_are_left_out_are_not_asked_for_their_type(kind: str) -> None:
    sink = registry.sinks()[kind].model_validate(PLACES[kind] | {"cdc": CDC | {"except_column_list": "op"}})

    assert sink.takes(["id", "lsn", "op", "text"]) == ("id", "lsn", "text")


@pytest.mark.parametrize(
    ("kind", "columns", "field"),
    [
        ("delta", {"id": "int", "lsn": "map<string,int>"}, "cdc.sequence_by"),
        ("delta", {"id": "variant", "lsn": "bigint"}, "cdc.keys"),
        ("postgres", {"id": "int", "lsn": "struct<a:int>"}, "cdc.sequence_by"),
        ("delta", {"id": "int", "lsn": "bigint", "__end_at": "bigint"}, None),
    ],
)
def test_a_column_without_an_order_is_refused(kind: str, columns: dict[str, str], field: str | None) -> None:
    sink = registry.sinks()[kind].model_validate(PLACES[kind] | {"cdc": CDC})

    assert [problem.field for problem in sink.refuses(columns)] == [field]


def test_a_struct_orders_changes_where_it_can_be_stored() -> None:
    sink = registry.sinks()["delta"].model_validate(PLACES["delta"] | {"cdc": CDC})

    assert sink.refuses({"id": "int", "lsn": "struct<at:timestamp,n:int>"}) == []


def test_what_empties_the_table_forgets_its_deletions() -> None:
    sinks = [registry.sinks()[kind].model_validate(PLACES[kind] | {"cdc": CDC}) for kind in PLACES]
    table = registry.sinks()["delta"].model_validate({"table": "sales.t", "cdc": CDC})

    assert [sink.clear_command() for sink in (*sinks, table)] == [
        "rm -r lake/t",
        "TRUNCATE t, millstream.deletions_t_" + sinks[1].deletions.rpartition("_")[2],  # type: ignore[attr-defined]
        "DROP TABLE sales.t; DROP TABLE IF EXISTS sales.t__deletions",
    ]
