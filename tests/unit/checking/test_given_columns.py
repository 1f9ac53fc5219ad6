"""Columns that the user gives for what a check cannot know."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from millstream.checking.given_columns import read_columns, read_columns_file
from millstream.diagnostics.failure import InvalidInput

if TYPE_CHECKING:
    from pathlib import Path

AVRO = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}


def test_a_schema_comes_from_avro_or_ddl_and_a_table_from_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "order.avsc").write_text(json.dumps(AVRO))
    (tmp_path / "click.ddl").write_text("user STRING\n")

    columns = read_columns(
        [f"Orders={tmp_path}/order.avsc", f"clicks={tmp_path}/click.ddl"], ["shop.`users`=id INT, age INT"]
    )

    assert columns == {"orders": "`id` bigint", "clicks": "user STRING", "shop.users": "id INT, age INT"}


def test_the_file_beside_a_script_keeps_them(tmp_path: Path) -> None:
    (tmp_path / "c.ddl").write_text("user STRING")
    (tmp_path / "millstream-check.yml").write_text("schemas: {clicks: c.ddl}\ntables: {shop.users: id INT}\n")

    assert read_columns_file(tmp_path) == {"clicks": "user STRING", "shop.users": "id INT"}
    assert read_columns_file(tmp_path / "other") == {}


@pytest.mark.parametrize("entry", ["orders", "=x", "orders="])
def test_what_is_not_a_name_and_a_value_is_refused(entry: str) -> None:
    with pytest.raises(InvalidInput, match="NAME=DDL"):
        read_columns([], [entry])


@pytest.mark.parametrize("text", ["tables: [1]", "tables: {a", "schemas: {a: nothing.avsc}"])
def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "millstream-check.yml").write_text(text)

    with pytest.raises(InvalidInput, match="cannot be read"):
        read_columns_file(tmp_path)


@pytest.mark.parametrize("encoding", ["utf-16", "latin-1"])
def test_files_that_are_not_utf_8_are_refused(tmp_path: Path, encoding: str) -> None:
    for name, text in (("a.ddl", "\u00e9 INT"), ("millstream-check.yml", "tables: {\u00e9: id INT}")):
        (tmp_path / name).write_text(text, encoding=encoding)

    with pytest.raises(InvalidInput, match=r"a\.ddl cannot be read: it is not UTF-8 text"):
        read_columns([f"a={tmp_path}/a.ddl"], [])
    with pytest.raises(InvalidInput, match="cannot be read"):
        read_columns_file(tmp_path)


def test_files_with_columns_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "order.avsc").write_text(json.dumps(AVRO), encoding="utf-8-sig")
    (tmp_path / "millstream-check.yml").write_text("schemas: {orders: order.avsc}\n", encoding="utf-8-sig")

    assert read_columns_file(tmp_path) == {"orders": "`id` bigint"}
