"""Rows that a sink refuses become dead letters, and the rest of the batch is written, each once."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from millstream.connectors import failpoints
from millstream.connectors.api.dead_letters import read_unique

if TYPE_CHECKING:
    from millstream.devstack.supervisor.state import Endpoints
    from millstream.engine.events.event_bus import Event
    from spark.conftest import Project

_count = itertools.count()
AT = "2026-01-01T12:01:00Z"


class Table:
    """A table that takes positive amounts, each id once, and a pipeline that writes it."""

    give_up_after = "1 minute"
    view = "SELECT * FROM orders"

    def __init__(self, project: Project, stack: Endpoints) -> None:
        self.project, self.url = project, stack.postgres
        self.name = f"sifted_{next(_count)}"
        self.ask(
            f"CREATE TABLE {self.name} (id text PRIMARY KEY, amount int CHECK (amount > 0), at timestamptz)"
        )

    def ask(self, query: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.url, autocommit=True) as connection:
            cursor = connection.execute(query)
            return cursor.fetchall() if cursor.description else []

    def run(self, *rows: tuple[str | None, int]) -> bool:
        if rows:
            self.project.add_lines(*({"id": id_, "amount": amount, "at": AT} for id_, amount in rows))
        return self.project.run(self.pipeline)

    @property
    def pipeline(self) -> Any:
        sink = {"url": self.url, "table": self.name, "ledger_schema": self.name}
        to = {"postgres": sink, "on_error": "dead_letter_rows"}
        retry = {"first": "10 ms", "give_up_after": self.give_up_after}
        return self.project.pipeline(
            views={"placed": self.view},
            queries={"copy": {"from": "placed", "to": [to]}},
            defaults={"retry": retry},
        )

    def ids(self) -> list[str]:
        return [row[0] for row in self.ask(f"SELECT id FROM {self.name} ORDER BY id")]

    def rejected_rows(self) -> list[tuple[str, str]]:
        """The ids of letters, and what the sink says of each."""
        dead_letters = read_unique(self.pipeline.letters)
        return sorted(
            (json.loads(dead_letter.value or b"")["id"], dead_letter.reason) for dead_letter in dead_letters
        )


@pytest.fixture
def table(project: Project, stack: Endpoints) -> Table:
    return Table(project, stack)


def test_the_rest_of_a_batch_is_written_and_refused_rows_are_kept_with_the_reason(table: Table) -> None:
    good = [(f"g{number}", 1) for number in range(20)]
    context = table.project.spark.sparkContext._jsc
    cached = len(context.getPersistentRDDs())  # type: ignore[attr-defined]

    assert table.run(*good[:7], ("low", -1), *good[7:], ("lower", -2))

    assert table.ids() == sorted(id_ for id_, _ in good)
    assert [id_ for id_, _ in table.rejected_rows()] == ["low", "lower"]
    assert all(
        "refuses it: table" in reason and "check constraint" in reason for _, reason in table.rejected_rows()
    )
    (event,) = table.project.list_events("dead_letter")
    assert [(part["reason"], part["records"]) for part in event.data["reasons"]] == [("refused", 2)]
    assert len(context.getPersistentRDDs()) == cached  # type: ignore[attr-defined]


def test_a_refused_row_with_the_position_of_its_record_is_not_that_record(table: Table) -> None:
    table.ask(f'ALTER TABLE {table.name} ADD topic text, ADD partition int, ADD "offset" bigint')
    table.view = "SELECT *, 'orders' AS topic, 0 AS partition, 473L AS offset FROM orders"

    assert table.run(("a", 1), ("low", -1))

    (letter,) = read_unique(table.pipeline.letters)
    assert (letter.topic, letter.partition, letter.offset) == (None, None, None)
    row = json.loads(letter.value or b"")
    assert (row["topic"], row["partition"], row["offset"]) == ("orders", 0, 473)


def test_a_batch_that_comes_again_adds_no_row_and_no_letter(table: Table) -> None:
    table.run(("a", 1), ("low", -1))
    table.project.forget_last_commit("copy")

    assert table.run()

    assert (table.ids(), [id_ for id_, _ in table.rejected_rows()]) == (["a"], ["low"])


def test_a_failure_between_the_letters_and_the_rows_doubles_nothing(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(failpoints, "_counts", {})
    monkeypatch.setenv(failpoints.VARIABLE, "rows.kept=raise@1")

    assert table.run(("a", 1), ("low", -1))

    assert (table.ids(), [id_ for id_, _ in table.rejected_rows()]) == (["a"], ["low"])
    assert len(table.project.list_events("retry")) == 1


def test_a_row_that_is_refused_only_when_the_batch_comes_again_is_not_lost(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(failpoints, "_counts", {})
    monkeypatch.setenv(failpoints.VARIABLE, "rows.kept=raise@1")
    table.project.add_lines(
        *({"id": id_, "amount": amount, "at": AT} for id_, amount in (("a", 1), ("low", -1)))
    )

    def take_key(event: Event) -> None:
        if event.event == "retry":
            table.ask(f"INSERT INTO {table.name} VALUES ('a', 7)")

    assert not table.project.run(table.pipeline, on_event=take_key)

    (failed,) = table.project.list_events("query_failed")
    assert "already has a row with the same key" in failed.data["reason"]
    table.ask(f"DELETE FROM {table.name}")
    assert table.run()
    assert (table.ids(), [id_ for id_, _ in table.rejected_rows()]) == (["a"], ["low"])


def test_rows_that_are_refused_only_together_end_the_query(table: Table) -> None:
    assert not table.run(("a", 1), ("a", 2))

    assert (table.ids(), table.rejected_rows()) == ([], [])


def test_a_table_that_is_gone_is_no_fault_of_the_rows(table: Table) -> None:
    table.run(("a", 1))
    table.ask(f"ALTER TABLE {table.name} RENAME COLUMN amount TO total")
    table.give_up_after = "1 second"

    assert not table.run(("b", 1))

    assert table.rejected_rows() == []
