"""Options of `millstream traffic` that are refused before anything is sent."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from millstream.cli.main import run_command

if TYPE_CHECKING:
    from pathlib import Path

SPEC = "name: shop\nsources:\n  ticks: {rate: 1}\nqueries:\n  ticks: {to: {console: {}}}\n"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--rows", "10", "--for", "60s"], "cannot be combined with --for or --speed"),
        (["--rows", "10", "--speed", "60"], "cannot be combined with --for or --speed"),
        (["--start", "2026-01-01T12:00:00"], "'2026-01-01T12:00:00' has no time zone"),
        (["--start", "2026-01-01"], "for UTC write 2026-01-01T00:00:00Z"),
    ],
)
def test_an_option_without_effect_is_refused(
    options: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "pipeline.yml").write_text(SPEC)
    (tmp_path / "traffic.yml").write_text("streams: {clicks: {rate: 1, fields: {id: uuid}}}")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KAFKA", "127.0.0.1:1")
    monkeypatch.setattr(
        "millstream.devstack.traffic.send.send_traffic", lambda *_: pytest.fail("it was sent")
    )

    assert run_command(["traffic", *options]) == 2

    assert message in capsys.readouterr().err
