"""An error of a run's start about a source or sink has the place that the check would show."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from millstream.cli.main import run_command
from millstream.connectors.console.sink import ConsoleSink
from millstream.connectors.kafka.client import admin
from millstream.connectors.rate.source import RateSource
from millstream.diagnostics.failure import NotReady, Unreachable

if TYPE_CHECKING:
    from pathlib import Path

SPEC = """name: shop
sources:
  ticks: {rate: 1}
queries:
  copy:
    from: ticks
    to:
      - console: {}
"""


@pytest.mark.parametrize(
    ("kind", "error", "code", "place"),
    [
        (RateSource, NotReady, "MS561", "pipeline.yml:3:3"),
        (RateSource, Unreachable, "MS560", "pipeline.yml:3:3"),
        (ConsoleSink, Unreachable, "MS560", "pipeline.yml:8:9"),
    ],
)
def test_the_error_points_into_the_spec(
    kind: type,
    error: type[NotReady],
    code: str,
    place: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def absent(_: object) -> None:
        raise error("topic 'clickz' does not exist", "write 'clicks'")

    (tmp_path / "pipeline.yml").write_text(SPEC)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(kind, "probe", absent)

    assert run_command(["run", "--no-page"]) == 4

    text = capsys.readouterr().err
    assert f"error[{code}]: topic 'clickz' does not exist" in text
    assert f"--> {place}" in text
    assert "fix:  write 'clicks'" in text


def test_a_topic_that_does_not_exist_gets_the_nearest_one_of_the_broker(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Topic:
        error = None
        partitions: dict[int, object] = {}

    class Client:
        def __init__(self, *_: object, **__: object) -> None: ...

        def list_topics(self, **_: object) -> Any:
            return type("Listing", (), {"topics": {"clicks": Topic(), "orders": Topic()}})()

    class Broker:
        bootstrap_servers = ("localhost:9092",)

        def native(self) -> dict[str, str]:
            return {}

    monkeypatch.setattr(admin, "AdminClient", Client)

    with pytest.raises(
        NotReady, match=r"topic .clickz. does not exist at localhost:9092; did you mean .clicks."
    ):
        admin.describe_topics(Broker(), ["clickz"])  # type: ignore[arg-type]
    with pytest.raises(NotReady, match=r"does not exist at localhost:9092$"):
        admin.describe_topics(Broker(), ["payments"])  # type: ignore[arg-type]
