"""Past runs are listed, and one is chosen by the beginning of its name."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner, Result

from millstream.cli.run import history
from millstream.cli.run.run import command
from millstream.dashboard.run_log import RunLog

if TYPE_CHECKING:
    from pathlib import Path

SPEC = """
name: shop
sources: {ticks: {rate: {rows_per_second: 1}}}
queries: {ticks: {to: {console: }}}
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with three runs: stopped, failed, killed."""
    (tmp_path / "pipeline.yml").write_text(SPEC)
    for name, code in (("20260301-1", 0), ("20260302-1", 1), ("20260302-2", None)):
        log = RunLog(tmp_path / ".millstream/runs" / name)
        log.write(json.dumps({"event": "described", "at": "2026-03-01T12:00:00.000Z", "pipeline": "shop"}))
        if code is not None:
            log.write(
                json.dumps({"event": "run_stopped", "at": "2026-03-01T13:00:00.000Z", "exit_code": code})
            )
        log.close()
    return tmp_path


def _invoked(words: list[str]) -> Result:
    # As the command's group has it: click keeps the first names it is asked with.
    names = {"help_option_names": ["-h", "--help"]}
    return CliRunner().invoke(command, words, standalone_mode=False, **names)


def test_past_runs_are_listed_the_latest_first(project: Path) -> None:
    output = _invoked(["-f", str(project), "--history"]).output

    lines = output.splitlines()[-3:]
    assert [line.split()[0] for line in lines] == ["20260302-2", "20260302-1", "20260301-1"]
    assert [
        line.endswith(how) for line, how in zip(lines, ["or killed", "gave up", "stopped"], strict=True)
    ] == [True] * 3


def test_a_program_gets_an_object_a_line(project: Path) -> None:
    output = _invoked(["-f", str(project), "--history", "--json"]).output

    messages = [json.loads(line) for line in output.splitlines()]
    assert [(item["run"], item["exit_code"]) for item in messages] == [
        ("20260302-2", None),
        ("20260302-1", 1),
        ("20260301-1", 0),
    ]


def test_a_run_is_served_by_the_beginning_of_its_name(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    served: list[str] = []
    monkeypatch.setattr(history, "serve_run", lambda folder, _: served.append(folder.name) or 0)

    ended = _invoked(["-f", str(project), "--history", "20260301"])

    assert ended.exception is None
    assert served == ["20260301-1"]


@pytest.mark.parametrize(
    ("name", "said"), [("2026030", "several runs are called"), ("x", "no run is called 'x'")]
)
def test_a_name_of_no_run_or_of_several_is_refused(project: Path, name: str, said: str) -> None:
    ended = _invoked(["-f", str(project), "--history", name])

    assert said in str(ended.exception)
