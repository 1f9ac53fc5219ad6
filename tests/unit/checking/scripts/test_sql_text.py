"""Views in place of tables: their names, and the SQL that reads them."""

from __future__ import annotations

import pytest

from millstream.checking.scripts.sql_text import TableViews, with_view


@pytest.mark.parametrize(
    ("table", "taken", "existing", "view"),
    [
        ("bronze.orders", [], [], "orders"),
        ("bronze.orders", ["orders"], [], "bronze_orders"),
        ("bronze.orders", [], ["orders"], "bronze_orders"),
        ("bronze.orders", ["orders"], ["bronze_orders"], "bronze_orders_2"),
        ("json./d/b.json", ["json"], [], "json__d_b_json"),
        ("delta./lake/silver.2", [], [], "delta__lake_silver_2"),
        ("orders", ["orders"], ["orders"], "orders"),
    ],
)
def test_a_table_gets_a_view_of_a_name_that_nothing_else_has(
    table: str, taken: list[str], existing: list[str], view: str
) -> None:
    assert TableViews().choose(table, taken, lambda name: object() if name in existing else None) == view


def test_a_view_is_replaced_only_for_the_same_table_and_if_the_script_has_not_replaced_it() -> None:
    class View:
        def equals(self, other: object) -> bool:
            return self is other

    views, created = TableViews(), View()
    views.note("orders", "bronze.orders", created)

    assert views.choose("bronze.orders", [], {"orders": created}.get) == "orders"
    assert views.choose("silver.orders", [], {"orders": created}.get) == "silver_orders"
    assert views.choose("bronze.orders", [], {"orders": View()}.get) == "bronze_orders"


def test_a_view_is_that_of_another_table_until_the_script_replaces_it() -> None:
    class View:
        def equals(self, other: object) -> bool:
            return self is other

    views, created = TableViews(), View()
    views.note("orders", "bronze.orders", created)
    views.note("sales", "sales", created)

    assert views.has_other_table("Orders", created)
    assert not views.has_other_table("orders", View())
    assert not views.has_other_table("orders", None)
    assert not views.has_other_table("sales", created)
    assert not views.has_other_table("stock", None)


@pytest.mark.parametrize(
    ("text", "others", "expected"),
    [
        ("SELECT a FROM b.t", [], "SELECT a FROM b_t"),
        ("SELECT t.a, b.t.a, `b`.`t`.`a` FROM b.t", [], "SELECT b_t.a, b_t.a,     b_t.`a` FROM b_t"),
        ("SELECT t.a FROM b.t JOIN t", ["t"], "SELECT t.a FROM b_t JOIN t"),
        ("SELECT t.a FROM b.t JOIN c.t", ["c.t"], "SELECT t.a FROM b_t JOIN c.t"),
        ("SELECT t.a FROM b.t AS t", [], "SELECT t.a FROM b_t AS t"),
        ("SELECT t.a FROM b.t x JOIN u t", ["u"], "SELECT t.a FROM b_t x JOIN u t"),
        ("SELECT 1 FROM b.t JOIN b.t.u JOIN t.u", ["b.t.u", "t.u"], "SELECT 1 FROM b_t JOIN b.t.u JOIN t.u"),
    ],
)
def test_the_view_is_also_before_the_names_of_columns(text: str, others: list[str], expected: str) -> None:
    assert with_view(text, "b.t", "b_t", others) == expected


def test_a_view_with_the_last_part_of_the_name_leaves_the_positions_of_the_text() -> None:
    text = "SELECT bronze.orders.id, orders.n FROM bronze.orders o"

    assert with_view(text, "bronze.orders", "orders") == (
        "SELECT        orders.id, orders.n FROM        orders o"
    )
