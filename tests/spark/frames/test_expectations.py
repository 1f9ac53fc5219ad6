"""Rows that break an expectation: counted, left out, set aside once, or the end of the query."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from millstream.connectors.api import dead_letters

if TYPE_CHECKING:
    from spark.conftest import Project

GOOD = {"id": "a", "amount": 3, "at": "2026-01-01T12:01:00Z"}
LOW = {"id": "b", "amount": -4, "at": "2026-01-01T12:02:00Z"}
NONE = {"id": "c", "amount": None, "at": "2026-01-01T12:03:00Z"}


def expecting(project: Project, otherwise: str, place: str = "source", that: str = "amount > 0") -> Any:
    """The project's pipeline, with an expectation of its source or of a view between it and `copy`."""
    expect = {"positive_amount": {"that": that, "otherwise": otherwise}}
    plain = project.pipeline().model_dump(by_alias=True, exclude={"folder", "file"}, mode="json")
    source = {
        "json": {"path": str(project.folder / "in")},
        "schema": {"id": "string", "amount": "int", "at": "timestamp"},
        "watermark": plain["sources"]["orders"]["watermark"],
        "on_malformed": "dead_letter",
    }
    view: Any = {"sql": "SELECT id, amount * 2 AS amount, at FROM orders"}
    (source if place == "source" else view)["expect"] = expect
    return project.pipeline(
        sources={"orders": source},
        views={"doubled": view},
        queries={
            "copy": {
                "from": "doubled",
                "to": [{"parquet": str(project.folder / "files")}, {"delta": str(project.folder / "table")}],
            }
        },
    )


def ids(project: Project) -> list[str]:
    return [row[0] for row in project.rows("table")]


def counts(project: Project) -> list[Any]:
    return [
        event.data["expectations"]
        for event in project.list_events("batch_committed")
        if event.data["rows_in"]
    ]


def removed(project: Project) -> int:
    return sum(event.data["rows_removed"] for event in project.list_events("batch_committed"))


@pytest.mark.parametrize("place", ["source", "view"])
def test_a_warning_keeps_the_row_and_counts_it_once(project: Project, place: str) -> None:
    project.add_lines(GOOD, LOW, NONE)

    assert project.run(expecting(project, "warn", place))

    assert ids(project) == ["a", "b", "c"]
    assert counts(project) == [{"orders" if place == "source" else "doubled": {"positive_amount": 2}}]
    assert removed(project) == 0


@pytest.mark.parametrize("place", ["source", "view"])
def test_a_dropped_row_is_in_no_sink(project: Project, place: str) -> None:
    project.add_lines(GOOD, LOW, NONE)

    assert project.run(expecting(project, "drop", place))

    assert ids(project) == ["a"]
    assert removed(project) == 2
    assert [row[0] for row in project.rows("files", "parquet")] == ["a"]
    assert dead_letters.read_unique(expecting(project, "drop", place).letters) == []


@pytest.mark.parametrize(
    ("place", "that"),
    [("source", "amount > 0"), ("source", "amount > 0 AND at < current_timestamp()"), ("view", "amount > 0")],
)
def test_a_row_set_aside_is_kept_with_its_expectation(project: Project, place: str, that: str) -> None:
    project.add_lines(GOOD, LOW, NONE, "{broken")
    pipeline = expecting(project, "dead_letter", place, that)

    assert project.run(pipeline)

    assert ids(project) == ["a"]
    assert removed(project) == 2
    remaining = [
        dead_letter for dead_letter in dead_letters.read_unique(pipeline.letters) if dead_letter.expectation
    ]
    assert [item.expectation for item in remaining] == ["positive_amount"] * 2
    assert {item.reason for item in remaining} == {f"expected {that}"}
    amount = -4 if place == "source" else -8
    assert sorted(item.value or b"" for item in remaining) == sorted(
        f'{{"id":"{id_}","amount":{value},"at":"2026-01-01T12:0{minute}:00.000000Z"}}'.encode()
        for id_, value, minute in (("b", amount, 2), ("c", "null", 3))
    )


def test_a_malformed_record_beside_it_is_a_letter_of_its_own(project: Project) -> None:
    project.add_lines(GOOD, LOW, "{broken")
    pipeline = expecting(project, "dead_letter")

    project.run(pipeline)

    unique = dead_letters.read_unique(pipeline.letters)
    assert sorted((item.expectation or "", item.reason) for item in unique) == [
        ("", "the record does not fit the schema"),
        ("positive_amount", "expected amount > 0"),
    ]
    assert {event.data["records"] for event in project.list_events("dead_letter")} == {2}


@pytest.mark.parametrize("place", ["source", "view"])
def test_a_batch_that_comes_again_sets_nothing_aside_again(project: Project, place: str) -> None:
    project.add_lines(GOOD, LOW, LOW)
    pipeline = expecting(project, "dead_letter", place)
    project.run(pipeline)
    before = dead_letters.read_unique(pipeline.letters)

    project.forget_last_commit("copy")
    project.run(pipeline)

    assert len(before) == 2
    assert dead_letters.read_unique(pipeline.letters) == before


def test_more_letters_of_a_view_than_a_batch_can_carry_end_it_until_they_are_dropped(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("millstream.frames.dead_letter_columns.MOST_COLLECTED", 1)
    monkeypatch.setattr("millstream.engine.delivery.dead_letters.MOST_COLLECTED", 1)
    project.add_lines(GOOD, LOW, NONE)

    assert not project.run(expecting(project, "dead_letter", "view"))

    (failed,) = project.list_events("query_failed")
    assert "2 rows of 'doubled' break an expectation in one batch, and at most 1 " in failed.data["reason"]
    assert project.run(expecting(project, "drop", "view"))
    assert ids(project) == ["a"]
    assert [row[0] for row in project.rows("files", "parquet")] == ["a"]


@pytest.mark.parametrize("place", ["source", "view"])
def test_a_failure_ends_the_query_and_names_the_expectation_and_the_row(project: Project, place: str) -> None:
    project.add_lines(GOOD, LOW)

    fine = project.run(expecting(project, "fail", place))

    assert not fine
    (failed,) = project.list_events("query_failed")
    text = "source 'orders'" if place == "source" else "view 'doubled'"
    assert f"expectation 'positive_amount' of {text} does not hold" in failed.data["reason"]
    assert '"id":"b"' in failed.data["reason"]


def test_a_view_that_is_read_twice_counts_its_rows_once(project: Project) -> None:
    project.add_lines(GOOD, LOW)
    pipeline = expecting(project, "dead_letter", "view")
    both = {"sql": "SELECT id FROM doubled UNION ALL SELECT id FROM doubled"}
    pipeline = project.pipeline(
        sources=_plain(pipeline, "sources"),
        views={**_plain(pipeline, "views"), "both": both},
        queries={"copy": {"from": "both", "to": [{"delta": str(project.folder / "table")}]}},
    )

    project.run(pipeline)

    assert ids(project) == ["a", "a"]
    assert len(dead_letters.read_unique(pipeline.letters)) == 1


def _plain(pipeline: Any, section: str) -> Any:
    """A section of a pipeline as the model takes it."""
    return getattr(pipeline, section)
