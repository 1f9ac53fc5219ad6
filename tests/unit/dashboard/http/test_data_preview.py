"""Looks at sinks, sources and letters: bounded, shared, and never an error."""

from __future__ import annotations

import json
import threading
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from millstream.connectors.api.values.recent_message import RecentMessage
from millstream.dashboard.http import data_preview
from millstream.dashboard.http.data_preview import DataPreviews, message_json, table_json, to_json_value
from millstream.diagnostics.failure import NotReady
from millstream.pipeline.model import Pipeline
from millstream.spec.secrets.redaction import REDACTOR

if TYPE_CHECKING:
    from collections.abc import Iterator

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait longer for a sink than a page would."""
    monkeypatch.setattr(data_preview, "PATIENCE", 60.0)


@pytest.fixture
def looks(tmp_path: Path) -> Iterator[DataPreviews]:
    spec = {
        "name": "shop",
        "folder": tmp_path,
        "sources": {"ticks": {"rate": {"rows_per_second": 1}}},
        "queries": {"ticks": {"to": [{"delta": str(tmp_path / "lake")}, {"console": {}}]}},
    }
    REDACTOR.protect("S3CR3T")
    result = DataPreviews(Pipeline.model_validate(spec), lambda *_: [])
    yield result
    result.close()


def test_a_table_that_is_not_there_yet_is_a_note(looks: DataPreviews) -> None:
    rows = looks.rows("sink.ticks.0")

    assert rows is not None
    assert rows["note"] == "there is no Delta table at lake yet"
    assert (rows["rows"], rows["columns"]) == ([], [])


@pytest.mark.parametrize(("stored", "truncated"), [(2, False), (3, True), (4, True)])
def test_rows_say_whether_the_sink_may_have_more(
    looks: DataPreviews, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stored: int, *, truncated: bool
) -> None:
    monkeypatch.setattr(data_preview, "ROWS", 3)
    write_deltalake(str(tmp_path / "lake"), pa.table({"n": list(range(stored))}))

    rows = looks.rows("sink.ticks.0")

    assert rows is not None
    assert (len(rows["rows"]), rows["truncated"]) == (min(stored, 3), truncated)


def test_a_sink_that_cannot_be_read_back_is_a_note(looks: DataPreviews) -> None:
    rows = looks.rows("sink.ticks.1")

    assert rows is not None
    assert rows["note"] == "console cannot be read back"


@pytest.mark.parametrize("sink", ["", "sink.ticks.2", "sink.nobody.0", "sink.ticks.x", "source.ticks"])
def test_an_id_of_no_sink_is_none(looks: DataPreviews, sink: str) -> None:
    assert looks.rows(sink) is None


def test_a_large_state_is_left_alone_and_that_of_an_unknown_query_is_none(looks: DataPreviews) -> None:
    state = looks.state("ticks", data_preview.MOST_KEYS + 1)

    assert state is not None
    assert state["stores"] == []
    assert state["note"].startswith("200,001 keys are too many")
    assert state["note"].endswith("millstream state show ticks")
    assert looks.state("nobody", 1) is None


def test_a_source_without_messages_is_a_note_and_an_unknown_one_is_none(looks: DataPreviews) -> None:
    messages = looks.messages("ticks")

    assert messages is not None
    assert "cannot show recent messages" in messages["note"]
    assert looks.messages("nobody") is None


def test_a_look_that_hangs_holds_nobody_for_long_and_is_not_begun_twice(
    looks: DataPreviews, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data_preview, "PATIENCE", 0.05)
    event, started = threading.Event(), []

    def hang() -> str:
        started.append(1)
        event.wait(60)
        return "rows"

    first, second = looks._ask("x", hang), looks._ask("x", hang)
    event.set()

    assert first[0] is None
    assert "no response within" in first[1]
    assert second == first
    assert len(started) == 1


def test_of_fifty_thousand_letters_only_the_file_of_the_newest_is_read(looks: DataPreviews) -> None:
    place = looks.pipeline.letters.target()
    for batch in range(10):
        write_deltalake(place, letters(batch, 5_000), mode="append")
    newest = max(Path(place).glob("*.parquet"), key=lambda file: file.stat().st_mtime_ns)
    for file in Path(place).glob("*.parquet"):
        if file != newest:
            # What is read of it cannot be found: looking into it would be an error.
            file.write_bytes(b"")

    messages = looks.letters()["latest"]

    assert [item["value"] for item in messages] == [f"9-{number}" for number in range(4_999, 4_949, -1)]


def letters(batch: int, rows: int) -> pa.Table:
    """Letters of one batch, each some milliseconds after the one before."""
    numbers = range(rows)
    return pa.table(
        {
            "query": ["copy"] * rows,
            "source": ["ticks"] * rows,
            "topic": ["ticks"] * rows,
            "partition": pa.array([0] * rows, pa.int32()),
            "offset": [batch * rows + number for number in numbers],
            "file": pa.array([None] * rows, pa.string()),
            "timestamp": pa.array([NOON] * rows, pa.timestamp("us", "UTC")),
            "key": pa.array([None] * rows, pa.binary()),
            "value": [f"{batch}-{number}".encode() for number in numbers],
            "reason": ["the value is not JSON"] * rows,
            "batch_id": [batch] * rows,
            "at": pa.array(
                [NOON + timedelta(seconds=batch * 60, milliseconds=number) for number in numbers],
                pa.timestamp("us", "UTC"),
            ),
        }
    )


def test_what_goes_wrong_is_told_without_secrets(
    looks: DataPreviews, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise NotReady("postgresql://me:S3CR3T@host refused\nfor reasons", "")

    monkeypatch.setattr(type(looks.pipeline.letters), "latest", refuse)

    assert looks.letters()["note"] == "postgresql://me:***@host refused for reasons"


def test_columns_have_types_and_a_plot_finds_its_time_and_figures() -> None:
    rows = [[NOON, "a", None, 1.5, Decimal("2.50")], [NOON.replace(hour=13), None, 7, float("nan"), None]]

    messages = table_json(["window_start", "name", "n", "mean", "price"], rows)

    assert [column["type"] for column in messages["columns"]] == [
        "timestamp",
        "string",
        "bigint",
        "double",
        "double",
    ]
    assert messages["time_column"] == "window_start"
    assert messages["value_columns"] == ["n", "mean", "price"]
    assert messages["rows"][0] == ["2026-03-01T13:00:00.000Z", None, 7, "nan", None]
    assert messages["rows"][1] == ["2026-03-01T12:00:00.000Z", "a", None, 1.5, "2.50"]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (datetime(2026, 3, 1, 12), "2026-03-01T12:00:00.000Z"),  # noqa: DTZ001 - as a driver may give it
        (date(2026, 3, 1), "2026-03-01"),
        (b"\xff{", "\ufffd{"),
        ({"a": [1]}, '{"a": [1]}'),
        (True, True),
        (float("inf"), "inf"),
        (2**53 - 1, 2**53 - 1),
        (2**60 + 1, "1152921504606846977"),
        (-(2**60) - 1, "-1152921504606846977"),
        (Decimal("12345678901234567890.1234567890"), "12345678901234567890.1234567890"),
        (Decimal("1E-10"), "0.0000000001"),
        (Decimal("NaN"), "NaN"),
        ("x" * 3000, "x" * 2000 + "…"),
    ],
)
def test_every_value_is_one_that_json_has(value: object, shown: object) -> None:
    assert to_json_value(value) == shown
    json.dumps(to_json_value(value), allow_nan=False)


def test_a_long_message_is_cut_and_says_so() -> None:
    messages = message_json(RecentMessage("clicks", 0, 7, NOON, None, b"x" * 3000))

    assert (len(messages["value"]), messages["cut"], messages["key"]) == (2000, True, None)
    assert messages["timestamp"] == "2026-03-01T12:00:00.000Z"
