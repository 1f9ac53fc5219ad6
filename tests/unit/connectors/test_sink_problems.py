"""Settings of the Delta and Postgres sinks that cannot work, found without asking anybody."""

from __future__ import annotations

from typing import Any

import pytest

from millstream.connectors import registry
from millstream.spec.output_mode import OutputMode

PG = {"url": "postgresql://localhost/shop", "table": "t"}


def problems(kind: str, mode: OutputMode = OutputMode.APPEND, **fields: Any) -> list[str | None]:
    return [problem.field for problem in registry.sinks()[kind].model_validate(fields).problems(mode)]


@pytest.mark.parametrize("mode", list(OutputMode))
def test_a_path_and_a_key_are_enough(mode: OutputMode) -> None:
    assert problems("delta", mode, path="lake/t", merge_on="k") == []
    assert problems("postgres", mode, **PG, merge_on="k") == []


def test_update_mode_needs_a_key() -> None:
    assert problems("delta", OutputMode.UPDATE, path="lake/t") == [None]
    assert problems("postgres", OutputMode.UPDATE, **PG) == [None]


def test_delta_needs_one_place() -> None:
    assert problems("delta") == ["path"]
    assert problems("delta", path="a", table="b") == ["table"]


def test_a_column_named_twice_is_pointed_at() -> None:
    assert problems("delta", path="a", partition_by=["d", "d"]) == ["partition_by"]
    assert problems("postgres", **PG, merge_on=["k", "k"]) == ["merge_on"]


def test_a_key_must_be_among_the_columns_written() -> None:
    assert problems("postgres", **PG, merge_on="k", columns=["v"]) == ["merge_on"]


def test_the_identity_of_a_table_has_no_password_and_no_port() -> None:
    sink = registry.sinks()["postgres"].model_validate(
        {"url": "postgresql://a:pw@h:123/shop?sslmode=require", "table": "t"}
    )

    assert sink.identity() == {"kind": "postgres", "target": "t", "database": "h/shop"}
