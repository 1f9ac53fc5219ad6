"""Options that every command takes, completion, and a start that fails at once."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from millstream.cli.main import COMMANDS, GROUPS, cli, run_command
from millstream.diagnostics.failure import MillstreamError

SPEC = "name: shop\nsources:\n  ticks: {rate: 1}\nqueries:\n  averages: {from: ticks, to: {console: {}}}\n"


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pipeline.yml").write_text(SPEC)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("words", [["-q", "check", "--fast"], ["check", "--fast", "--quiet"]])
def test_a_quiet_command_prints_its_result_and_no_hint(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(words) == 0
    said = capsys.readouterr()
    assert "no findings" in said.out
    assert said.err == ""

    assert run_command(["check", "--fast"]) == 0
    assert capsys.readouterr().err == "next: millstream check\n"


def test_a_quiet_plan_prints_no_hint(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["plan", "--fast"]) == 0
    assert capsys.readouterr().err == "next: millstream run\n"

    assert run_command(["plan", "--fast", "-q"]) == 0
    assert capsys.readouterr().err == ""


def test_a_quiet_command_still_prints_errors(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["graph", "-q", "-f", "nowhere.yml"]) == 2
    assert "there is no file nowhere.yml" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "module"), [(["graph"], "explain.graph"), (["run", "--no-page"], "run.run")]
)
def test_a_verbose_command_names_the_causes(
    command: list[str], module: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def raise_error(*_: object, **__: object) -> None:
        raise MillstreamError("the table cannot be read", "look at it") from OSError("disk is full")

    monkeypatch.setattr(f"millstream.cli.{module}.open_project", raise_error)

    run_command(command)
    assert "disk is full" not in capsys.readouterr().err
    run_command([*command, "-v"])
    assert "  caused by OSError: disk is full\n" in capsys.readouterr().err


def test_no_color_lasts_for_one_command(monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    monkeypatch.delenv("NO_COLOR", raising=False)
    seen = []
    monkeypatch.setattr(
        "millstream.cli.explain.graph.open_project", lambda *_: seen.append(os.environ.get("NO_COLOR"))
    )
    run_command(["graph", "--no-color"])
    run_command(["graph"])

    assert seen == ["1", None]


def test_the_help_lists_every_command_once_in_a_group(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["--help"]) == 0

    text = capsys.readouterr().out
    assert all(f"{group}:" in text for group in GROUPS)
    assert [name for name in COMMANDS if text.count(f"\n  {name} ") != 1] == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_gets_a_script_that_asks_this_command(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["completion", shell]) == 0

    script = capsys.readouterr().out
    assert "_MILLSTREAM_COMPLETE" in script
    assert "millstream" in script


def test_names_of_queries_are_completed() -> None:
    from click.shell_completion import ShellComplete

    found = ShellComplete(cli, {}, "millstream", "_MILLSTREAM_COMPLETE").get_completions(["show"], "av")

    assert [item.value for item in found] == ["averages"]


def test_a_port_that_is_taken_ends_a_run_before_anything_starts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def started(*_: object, **__: object) -> None:
        raise AssertionError("the spec was read")

    monkeypatch.setattr("millstream.cli.run.run.open_project", started)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert run_command(["run", "--port", str(port)]) == 4

    assert f"the live page cannot use port {port}" in capsys.readouterr().err


@pytest.mark.parametrize("word", ["watermark", "Watermarks", "output_mode", "exactly-once"])
def test_a_term_is_explained_with_and_without_a_project(
    word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["explain", word]) == 0
    inside = capsys.readouterr().out
    Path("pipeline.yml").unlink()
    assert run_command(["explain", word]) == 0

    assert capsys.readouterr().out == inside
    assert inside.startswith("# ")


def test_the_page_of_a_code_has_no_marks_of_its_tests(capsys: pytest.CaptureFixture[str]) -> None:
    run_command(["explain", "MS201"])

    page = capsys.readouterr().out
    assert "-- error:" not in page
    assert "snapshot" not in page
    assert page.endswith("*Spark itself starts the faulty query without an error.*\n")
