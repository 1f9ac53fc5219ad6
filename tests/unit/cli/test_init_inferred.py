from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from millstream.cli.main import run_command
from millstream.connectors.api.values.recent_message import RecentMessage
from millstream.connectors.registry import sources

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
    ],
)
def test_options_that_contradict_each_other_are_refused(
    tmp_path: Path, args: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["init", str(tmp_path), *args]) == 2

    assert message in capsys.readouterr().err
    assert not [*tmp_path.iterdir()]
