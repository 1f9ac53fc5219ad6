"""A batch whose rows are run a second time for its sink: what is counted and set aside of it is so once."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from deltalake import DeltaTable

from millstream.connectors.api import dead_letters
from millstream.connectors.delta.commit.numbered_append import NumberedAppend
from millstream.connectors.postgres.copy.rows import CopyRows

if TYPE_CHECKING:
    from millstream.pipeline.model import Pipeline
    from spark.conftest import Project

GOOD = {"id": "a", "amount": 3, "at": "2026-01-01T12:01:00Z"}
MORE = {"id": "b", "amount": 4, "at": "2026-01-01T12:02:00Z"}
LOW = {"id": "c", "amount": -4, "at": "2026-01-01T12:03:00Z"}


def pipeline(project: Project, sink: dict[str, Any], select: str) -> Pipeline:
    """Malformed records are counted as they are read, broken expectations in the view."""
    view = {
        "sql": f"SELECT {select} id, amount FROM orders",
        "expect": {"positive": {"that": "amount > 0", "otherwise": "dead_letter"}},
    }
    return project.pipeline(views={"some": view}, queries={"copy": {"from": "some", "to": [sink]}})


def lost_once(monkeypatch: pytest.MonkeyPatch, folder: str) -> None:
    """The first append is lost to somebody who changes the table after its rows are written."""
    commit, appends = NumberedAppend.commit, []

    def late(self: NumberedAppend, *given: Any) -> None:
        if not appends:
            appends.append(self)
            DeltaTable(folder).alter.set_table_properties({"delta.appendOnly": "true"})
        commit(self, *given)

    monkeypatch.setattr(NumberedAppend, "commit", late)


def too_large_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver refuses the rows once they have come."""

    def copy_and_fail(*given: Any) -> CopyRows:
        CopyRows(*given)
        raise RuntimeError("Total size of serialized results is bigger than spark.driver.maxResultSize")

    monkeypatch.setattr("millstream.connectors.postgres.writer.CopyRows", copy_and_fail)


# A shuffle's files are kept: what is counted before it is not counted again by a second run.
@pytest.mark.sweep("select", "kind")
@pytest.mark.parametrize("select", ["", "/*+ REPARTITION(2) */"], ids=["one stage", "behind a shuffle"])
@pytest.mark.parametrize("kind", ["delta", "postgres"])
def test_rows_letters_and_sums_of_a_batch_that_is_written_at_the_second_attempt_are_counted_once(
    kind: str,
    select: str,
    project: Project,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    sink: dict[str, Any] = {"delta": str(project.folder / "table")}
    if kind == "postgres":
        # The database is shared by all tests.
        name = f"attempts_{uuid.uuid4().hex[:8]}"
        url = request.getfixturevalue("stack").postgres
        sink = {"postgres": {"url": url, "table": name, "ledger_schema": name}}
    spec = pipeline(project, sink, select)
    project.add_lines(GOOD)
    assert project.run(spec)
    project.add_lines(GOOD, MORE, LOW, "{broken", "{broken too")
    if kind == "delta":
        lost_once(monkeypatch, str(project.folder / "table"))
    else:
        too_large_once(monkeypatch)

    assert project.run(spec)

    last = [event.data for event in project.list_events("batch_committed") if event.data["rows_in"]][-1]
    assert (last["rows_in"], last["rows_out"], last["malformed"]) == (5, 2, 2)
    assert last["expectations"] == {"some": {"positive": 1}}
    assert [event.data["records"] for event in project.list_events("dead_letter")] == [3]
    unique = dead_letters.read_unique(spec.letters)
    assert sorted(dead_letter.expectation or "malformed" for dead_letter in unique) == [
        "malformed",
        "malformed",
        "positive",
    ]
    if kind == "delta":
        assert len(project.rows("table")) == 3
    else:
        assert _content(sink["postgres"]) == "2"


def _content(sink: dict[str, Any]) -> str:
    """How many rows the ledger's sum over the content of the last batch is of."""
    query = f"SELECT note ->> 'content' FROM {sink['ledger_schema']}.ledger ORDER BY batch_id DESC"
    with psycopg.connect(sink["url"]) as connection:
        row = connection.execute(query).fetchone()
    assert row is not None
    return str(row[0]).partition(":")[0]
