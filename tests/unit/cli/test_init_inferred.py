from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from millstream.cli.main import run_command
from millstream.connectors.api.values.recent_message import RecentMessage
from millstream.connectors.registry import sources
from millstream.pipeline.spec_file import load_spec
from millstream.spec.avro.encoding import encode_row
from millstream.spec.avro.schema import Avro

if TYPE_CHECKING:
    from pathlib import Path

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.fixture
def topic(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A topic with 200 clicks, a quarter of them seven seconds late; the working folder is empty."""

    def click(number: int) -> dict[str, object]:
        at = NOON + timedelta(seconds=number - (7 if number % 4 == 3 else 0))
        user = {} if number == 5 else {"user": f"u{number}"}
        return {
            "id": number,
            **user,
            "ts": round(at.timestamp() * 1000),
            "code": number if number % 2 else "x",
        }

    messages = [
        RecentMessage("clicks", 0, number, NOON, None, json.dumps(click(number)).encode())
        for number in range(200)
    ]
    monkeypatch.setattr(sources()["kafka"], "recent", lambda *_: [*messages])
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("topic")
def test_the_spec_says_what_was_seen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["init", "shop", "--from-topic", "clicks", "--servers", "kafka-1:9092"]) == 0

    spec = (tmp_path / "shop/pipeline.yml").read_text()
    assert "name: shop" in spec
    assert "bootstrap_servers: kafka-1:9092" in spec
    assert "# missing or null in 1 of 200" in spec
    assert "# of several types, so read as text" in spec
    assert "ts: bigint    # milliseconds since 1970" in spec
    assert "50 of 200 records came after a newer one, by at most about 6 seconds." in spec
    assert "timestamp_millis(ts) AS ts" in spec
    assert "WATERMARK ts DELAY OF INTERVAL 30 SECONDS" in spec
    output = capsys.readouterr()
    assert (
        "4 columns and event time 'ts', watermark 30 seconds, from 200 records of topic 'clicks'"
        in output.out
    )
    assert "100 real messages: look at them before you commit it" in output.err
    assert "next: cd shop && millstream dev" in output.err
    assert len((tmp_path / "shop/samples/clicks.jsonl").read_text().splitlines()) == 100


@pytest.mark.usefixtures("topic")
@pytest.mark.parametrize("existing", ["pipeline.yml", "samples/clicks.jsonl"])
def test_no_file_is_overwritten(tmp_path: Path, existing: str, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / existing).parent.mkdir(exist_ok=True)
    (tmp_path / existing).write_text("mine")

    assert run_command(["init", "--from-topic", "clicks"]) == 2

    assert f"{existing} exists already" in capsys.readouterr().err
    assert [file.read_text() for file in tmp_path.rglob("*") if file.is_file()] == ["mine"]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--from", "starter", "--from-topic", "clicks"], "cannot be combined"),
        (["--from-topic", "clicks", "--from-files", "*"], "cannot be combined"),
        (["--servers", "kafka-1:9092"], "--servers needs --from-topic"),
        (["--security", "protocol=SSL"], "--security needs --from-topic"),
    ],
)
def test_options_that_contradict_each_other_are_refused(
    tmp_path: Path, args: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["init", str(tmp_path), *args]) == 2

    assert message in capsys.readouterr().err
    assert not [*tmp_path.iterdir()]


LOGIN = ["--security", "username=${SHOP_USER}", "--security", "password=${SHOP_PASSWORD}"]


@pytest.mark.usefixtures("topic")
def test_a_login_is_written_with_its_variables_and_used_with_their_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    recent = sources()["kafka"].recent
    monkeypatch.setattr(
        sources()["kafka"], "recent", lambda source, limit: seen.append(source) or recent(source, limit)
    )
    monkeypatch.setenv("SHOP_USER", "ada")
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop/.env").write_text("SHOP_PASSWORD=of ada\n")

    assert run_command(["init", "shop", "--from-topic", "clicks", *LOGIN]) == 0

    assert seen[0].security.native() == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "ada",
        "sasl.password": "of ada",
    }
    spec = (tmp_path / "shop/pipeline.yml").read_text()
    assert "of ada" not in spec
    assert load_spec(tmp_path / "shop/pipeline.yml", {"SHOP_USER": "x", "SHOP_PASSWORD": "y"}).pipeline


@pytest.mark.usefixtures("topic")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--security", "password=open sesame"], "would write the password itself into pipeline.yml"),
        (["--security", "protocol"], "'protocol' has no value"),
        (["--security", "protocol=TLS"], "protocol: Input should be"),
        (["--security", "mechanism=PLAIN"], "needs a username and a password"),
        (LOGIN, "SHOP_USER"),
    ],
)
def test_a_login_that_cannot_be_one_is_a_sentence(
    words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["init", "--from-topic", "clicks", *words]) == 2

    assert message in capsys.readouterr().err
    assert not [*tmp_path.iterdir()]


SCHEMA = {
    "type": "record",
    "name": "Click",
    "fields": [{"name": "id", "type": "long"}, {"name": "ts", "type": "long"}],
}


def test_a_topic_of_avro_becomes_a_project_with_its_schema(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    avro = Avro.model_validate({"schema": SCHEMA, "header": "confluent", "id": 7})
    millis = round(NOON.timestamp() * 1000)
    values = [encode_row(avro, {"id": number, "ts": millis + number}) for number in range(30)]
    messages = [RecentMessage("clicks", 0, number, NOON, None, value) for number, value in enumerate(values)]
    monkeypatch.setattr(sources()["kafka"], "recent", lambda *_: messages)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "schemas").mkdir()
    (tmp_path / "schemas/click.avsc").write_text(json.dumps(SCHEMA))

    init = ["init", "shop", "--from-topic", "clicks", "--avro-schema", "schemas/click.avsc"]
    assert run_command(init) == 0

    loaded = load_spec(tmp_path / "shop/pipeline.yml", {})
    assert not loaded.findings
    assert loaded.pipeline is not None
    source = loaded.pipeline.sources["clicks"]
    assert source.avro_value == avro
    assert source.columns == {"id": "bigint", "ts": "bigint"}
    assert "timestamp_millis(ts) AS ts" in (tmp_path / "shop/pipeline.yml").read_text()
    assert "schema: click.avsc" in (tmp_path / "shop/pipeline.yml").read_text()
    assert run_command(init) == 2


def test_a_file_that_is_no_schema_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "click.avsc").write_text('{"type": "string"}')

    assert run_command(["init", "shop", "--from-topic", "clicks", "--avro-schema", "click.avsc"]) == 2

    assert "the schema's type must be 'record'" in capsys.readouterr().err
