"""The command `deadletter` without Spark: what is kept, looked at and deleted."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from millstream.cli.main import run_command
from millstream.connectors import registry
from millstream.connectors.api.dead_letters import read_unique
from millstream.connectors.kafka.source import KafkaSource
from millstream.diagnostics.failure import NotReady

if TYPE_CHECKING:
    from pathlib import Path

    from millstream.connectors.api.dead_letters import DeadLetter

SPEC = """name: shop
sources:
  ticks: {rate: {rows_per_second: 3}}
queries:
  ticks: {to: {console: {}}}
"""
ORDERS = "  orders: {kafka: {bootstrap_servers: 'localhost:1', subscribe: orders}, schema: {id: string}}\n"
PAID = ORDERS.replace("orders", "paid")
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
FIRST: dict[str, Any] = {
    "query": "ticks",
    "source": "orders",
    "topic": "orders",
    "partition": 3,
    "offset": 7,
    "file": None,
    "timestamp": None,
    "key": b"k\x1b[31m",
    "value": b"\xff{" + b"a" * 20,
    "reason": "the value is not UTF-8",
    "batch_id": 0,
    "at": datetime(2026, 1, 1, tzinfo=UTC),
    "headers": [{"key": "trace", "value": b"\x00"}],
    "expectation": None,
}
SECOND = {
    **FIRST,
    "source": "paid",
    "offset": 9,
    "expectation": "positive",
    "at": datetime(2026, 2, 1, tzinfo=UTC),
}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with two letters."""
    (tmp_path / "pipeline.yml").write_text(SPEC)
    monkeypatch.chdir(tmp_path)
    letters = pa.Table.from_pylist([FIRST, SECOND])
    at = letters.schema.get_field_index("headers")
    write_deltalake(str(place(tmp_path)), letters.set_column(at, "headers", letters["headers"].cast(HEADERS)))
    return tmp_path


def place(project: Path) -> Path:
    return project / ".millstream" / "checkpoints" / "_dead_letters"


def sources(project: Path) -> list[str]:
    return [
        dead_letter.source
        for dead_letter in read_unique(
            registry.default_dead_letter_store().model_validate({"path": str(place(project))})
        )
    ]


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("which", ["1", "orders/3@7"])
def test_a_record_is_shown_whole_and_a_terminal_obeys_nothing_of_it(
    capsys: pytest.CaptureFixture[str], which: str
) -> None:
    assert run_command(["deadletter", "show", which]) == 0

    output = capsys.readouterr().out
    assert "place        orders/3@7" in output
    assert "reason       the value is not UTF-8" in output
    assert "header       'trace': '\\x00'" in output
    assert "  00000000  ff 7b 61" in output
    assert "\x1b" not in output


def test_a_reason_does_not_control_the_terminal(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    row = {**FIRST, "reason": "ValueError: bad \x1b]0;name\x07\nof the row"}
    rows = pa.Table.from_pylist([row])
    at = rows.schema.get_field_index("headers")
    rows = rows.set_column(at, "headers", rows["headers"].cast(HEADERS))
    write_deltalake(str(place(project)), rows, mode="overwrite")

    run_command(["deadletter", "list"])
    run_command(["deadletter", "show", "1"])

    output = capsys.readouterr()
    assert "\x1b" not in output.out + output.err
    assert "orders: 1 x ValueError: bad \\x1b]0;name\\x07" in output.err
    assert "reason       ValueError: bad \\x1b]0;name" in output.out


@pytest.mark.usefixtures("project")
def test_a_record_that_is_not_there_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["deadletter", "show", "orders/3@8"]) != 0

    assert "there is no record orders/3@8" in capsys.readouterr().err


@pytest.mark.usefixtures("project")
def test_the_list_has_the_expectation_and_the_headers(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["deadletter", "list", "--json"]) == 0

    data = json.loads(capsys.readouterr().out)
    assert [record["expectation"] for record in data["records"]] == [None, "positive"]
    assert data["records"][0]["headers"] == [{"key": "trace", "value_base64": "AA=="}]
    assert data["set_aside"] == []


@pytest.mark.usefixtures("project")
def test_the_newest_are_listed_and_how_many_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["deadletter", "list", "--limit", "1"]) == 0

    told = capsys.readouterr()
    heads, row = told.out.splitlines()
    assert heads.split() == ["number", "rejected", "source", "place", "reason", "value"]
    assert row.startswith(
        "2       2026-02-01 00:00:00  paid    orders/3@9  the value is not UTF-8  hex ff 7b 61"
    )
    assert "newest 1 of 2 records" in told.err
    assert "orders: 1 x the value is not UTF-8" in told.err
    assert run_command(["deadletter", "show", "2"]) == 0
    assert "orders/3@9" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("given", "left"),
    [
        (["--source", "paid"], ["orders"]),
        (["--before", "2026-01-15"], ["paid"]),
        (["--before", "2026-01-15", "--source", "paid"], ["orders", "paid"]),
        (["--all"], []),
    ],
)
def test_a_purge_deletes_what_is_named_and_nothing_else(
    project: Path, given: list[str], left: list[str]
) -> None:
    assert run_command(["deadletter", "purge", *given, "--yes"]) == 0

    assert sources(project) == left


def test_purged_bytes_are_in_no_file_any_more(project: Path) -> None:
    run_command(["deadletter", "purge", "--all", "--yes"])

    assert list(place(project).glob("*.parquet")) == []


def test_a_purge_that_names_nothing_deletes_nothing(project: Path) -> None:
    assert run_command(["deadletter", "purge", "--yes"]) != 0

    assert sources(project) == ["orders", "paid"]


def test_letters_of_a_table_without_the_later_columns_are_read(project: Path) -> None:
    older = pa.Table.from_pylist([FIRST]).drop_columns(["headers", "expectation"])
    write_deltalake(str(place(project)), older, mode="overwrite", schema_mode="overwrite")

    (letter,) = read_unique(
        registry.default_dead_letter_store().model_validate({"path": str(place(project))})
    )

    assert (letter.headers, letter.expectation) == (None, None)


def test_records_that_came_from_no_topic_cannot_be_sent_on(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["deadletter", "resend", "--source", "paid", "--to", "again"]) != 0

    assert "so they cannot be sent to a topic" in capsys.readouterr().err
    assert sources(project) == ["orders", "paid"]


def test_nothing_is_sent_if_one_of_the_named_records_cannot_be(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sent: list[DeadLetter] = []

    def send(_: object, __: str, letters: list[DeadLetter]) -> bool:
        sent.extend(letters)
        return True

    monkeypatch.setattr(KafkaSource, "resend", send)
    rows = pa.Table.from_pylist([{**SECOND, "topic": None}])
    at = rows.schema.get_field_index("headers")
    rows = rows.set_column(at, "headers", rows["headers"].cast(HEADERS))
    write_deltalake(str(place(project)), rows, mode="append")
    (project / "pipeline.yml").write_text(SPEC.replace("sources:\n", f"sources:\n{ORDERS}{PAID}"))
    numbers = [str(number) for number in (1, 2, 3)]

    assert run_command(["deadletter", "resend", *numbers, "--to", "again"]) == 2

    assert "the records of 'paid' did not come from a topic" in capsys.readouterr().err
    assert sent == []


def test_nothing_is_sent_if_a_source_does_not_read_topics_any_more(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(KafkaSource, "resend", lambda *_: pytest.fail("something was sent"))
    paid = "  paid: {json: paid, schema: {id: string}}\n"
    (project / "pipeline.yml").write_text(SPEC.replace("sources:\n", f"sources:\n{ORDERS}{paid}"))

    assert run_command(["deadletter", "resend", "1", "2", "--to", "again"]) == 2

    assert (
        "'paid' cannot be sent to a topic: in the spec, this source reads no topics"
        in capsys.readouterr().err
    )


def test_the_records_that_were_sent_before_a_failure_are_counted(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def send(_: object, __: str, letters: list[DeadLetter]) -> bool:
        if letters[0].source == "paid":
            raise NotReady("the broker does not respond")
        return True

    monkeypatch.setattr(KafkaSource, "resend", send)
    (project / "pipeline.yml").write_text(SPEC.replace("sources:\n", f"sources:\n{ORDERS}{PAID}"))

    assert run_command(["deadletter", "resend", "1", "2", "--to", "again"]) == 4

    assert "orders: 1 records sent to topic 'again'" in capsys.readouterr().err


def test_a_source_that_is_not_in_the_spec_is_named(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["deadletter", "resend", "1", "--to", "again"]) == 2

    assert "'orders' have a source that is not in the spec" in capsys.readouterr().err
    assert sources(project) == ["orders", "paid"]


def test_letters_that_are_stored_while_others_are_sent_are_not_deleted(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[bytes | None] = []

    def send_slowly(_: object, topic: str, letters: list[DeadLetter]) -> bool:
        assert topic == "again"
        sent.extend(letter.value for letter in letters)
        late = pa.Table.from_pylist([{**FIRST, "value": b"late", "at": datetime(2025, 1, 1, tzinfo=UTC)}])
        at = late.schema.get_field_index("headers")
        late = late.set_column(at, "headers", late["headers"].cast(HEADERS))
        write_deltalake(str(place(project)), late, mode="append")
        return True

    monkeypatch.setattr(KafkaSource, "resend", send_slowly)
    (project / "pipeline.yml").write_text(SPEC.replace("sources:\n", f"sources:\n{ORDERS}"))

    assert run_command(["deadletter", "resend", "--source", "orders", "--to", "again", "--delete"]) == 0

    assert sent == [FIRST["value"]]
    store = registry.default_dead_letter_store().model_validate({"path": str(place(project))})
    assert sorted(letter.value or b"" for letter in read_unique(store)) == sorted([b"late", SECOND["value"]])


def test_letters_that_are_stored_while_a_purge_asks_are_not_deleted(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def store_meanwhile(*_: object, **__: object) -> bool:
        late = pa.Table.from_pylist([{**FIRST, "source": "late", "at": datetime.now(UTC)}])
        at = late.schema.get_field_index("headers")
        late = late.set_column(at, "headers", late["headers"].cast(HEADERS))
        write_deltalake(str(place(project)), late, mode="append")
        return True

    monkeypatch.setattr("click.confirm", store_meanwhile)

    assert run_command(["deadletter", "purge", "--all"]) == 0

    assert sources(project) == ["late"]


def test_single_records_cannot_be_deleted_with_their_sending(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["deadletter", "resend", "1", "--to", "again", "--delete"]) == 2

    assert "--delete needs --source" in capsys.readouterr().err
    assert sources(project) == ["orders", "paid"]
