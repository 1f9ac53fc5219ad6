"""What the command line makes of an error: exit codes, and whose fault it says it is."""

from __future__ import annotations

import errno
import pwd
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import pytest

from millstream.cli.main import DEFECT, run_command
from millstream.cli.progress import ProgressReporter
from millstream.diagnostics.failure import CheckpointError, InvalidInput, MillstreamError, NotReady

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

SPEC = "name: shop\nsources:\n  ticks: {rate: 1}\nqueries:\n  ticks: {to: {console: {}}}\n"


def test_a_fault_of_ours_says_so_and_is_told_from_a_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "pipeline.yml").write_text(SPEC)

    def broken(*_: object) -> None:
        raise KeyError("what nobody foresaw")

    monkeypatch.setattr("millstream.checking.check.run_spec_rules", broken)

    code = run_command(["check", "--fast", "-f", str(tmp_path / "pipeline.yml")])

    captured = capsys.readouterr()
    assert code == DEFECT == 70
    assert "bug in Millstream, not in your pipeline" in captured.err
    assert "what nobody foresaw" in captured.err
    assert captured.out == ""


@pytest.mark.parametrize(
    ("error", "code"), [(MillstreamError, 1), (InvalidInput, 2), (CheckpointError, 3), (NotReady, 4)]
)
def test_what_was_foreseen_is_one_sentence_and_a_cure(
    error: type[MillstreamError],
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def raise_error(*_: object, **__: object) -> None:
        raise error("the broker is away", "start it")

    monkeypatch.setattr("millstream.cli.main.cli.main", raise_error)

    assert run_command(["run"]) == code
    assert capsys.readouterr().err == "millstream: the broker is away\n  fix: start it\n"


def test_a_failure_does_not_control_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def raise_error(*_: object, **__: object) -> None:
        raise MillstreamError("the value '\x1b[2J' is no number\nof the topic", "delete '\x07'")

    monkeypatch.setattr("millstream.cli.main.cli.main", raise_error)

    run_command(["run"])

    assert capsys.readouterr().err == (
        "millstream: the value '\\x1b[2J' is no number\nof the topic\n  fix: delete '\\x07'\n"
    )


@pytest.mark.parametrize(
    ("error", "first"),
    [
        (NotReady("the broker is away"), "millstream: the broker is away"),
        (click.UsageError("--yes needs --apply"), "Error: --yes needs --apply"),
        (KeyError("defect"), "millstream: this is a bug in Millstream"),
    ],
)
def test_an_error_replaces_the_progress_line(
    error: Exception, first: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def start(*_: object, **__: object) -> None:
        ProgressReporter().show("starting kafka")
        raise error

    monkeypatch.setattr("millstream.cli.main.cli.main", start)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)

    run_command(["up"])

    assert capsys.readouterr().err.startswith(f"\r\x1b[2Kstarting kafka\r\x1b[2K{first}")


@pytest.mark.parametrize(
    ("number", "reason", "fix"),
    [
        (errno.EACCES, "Permission denied", "grant this user the permission"),
        (errno.ENOSPC, "No space left on device", "free space on its disk"),
        (errno.ENOTDIR, "Not a directory", "name another path; this one has a file in the place of a folder"),
        (errno.EROFS, "Read-only file system", "name a folder on a file system that can be written"),
    ],
)
def test_a_file_that_the_system_refuses_is_no_defect(
    number: int, reason: str, fix: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("millstream.cli.main.cli.main", raising(OSError(number, reason, "/srv/ck/offsets")))
    monkeypatch.setattr("millstream.cli.main._find_owner", lambda _: None)

    assert run_command(["checkpoint", "list"]) == 4

    message = f"millstream: /srv/ck/offsets cannot be read or written: {reason}\n  fix: {fix}\n"
    assert capsys.readouterr().err == message


def test_a_write_to_a_full_disk_is_no_defect(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # The error of a write, other than that of an open, does not name the file.
    monkeypatch.setattr(
        "millstream.cli.main.cli.main", lambda *_, **__: Path("/dev/full").write_text("batch")
    )

    assert run_command(["checkpoint", "list"]) == 4

    assert capsys.readouterr().err == (
        "millstream: a file cannot be read or written: No space left on device\n  fix: free space on its disk\n"
    )


@pytest.mark.parametrize(
    "error",
    [OSError(errno.EACCES, "Permission denied"), FileNotFoundError(errno.ENOENT, "No such file", "/srv/ck")],
    ids=["without a file", "of a file that is gone"],
)
def test_other_errors_of_the_system_may_be_defects(error: OSError, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("millstream.cli.main.cli.main", raising(error))

    assert run_command(["checkpoint", "list"]) == DEFECT


def test_a_user_who_may_not_enter_the_folder_of_a_run_can_check_the_spec_and_is_told_who_may(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = tmp_path / "pipeline.yml"
    spec.write_text(SPEC)
    closed = tmp_path / ".millstream"
    closed.mkdir()
    stat, is_mine = Path.stat, Path.stat(closed).st_uid

    def refuse(path: Path, **more: Any) -> os.stat_result:
        if closed in path.parents:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return stat(path, **more)

    monkeypatch.setattr(Path, "stat", refuse)
    monkeypatch.setattr("os.geteuid", lambda: is_mine + 1)

    assert run_command(["check", "--fast", "-f", str(spec)]) == 0
    assert run_command(["checkpoint", "list", "-f", str(spec)]) == 4

    errors = capsys.readouterr().err
    owner = pwd.getpwuid(is_mine).pw_name
    assert "cannot be read or written: Permission denied" in errors
    assert f"fix: run the command as user '{owner}', or grant this user the permission" in errors


def raising(error: Exception) -> Callable[..., None]:
    def fail(*_: object, **__: object) -> None:
        raise error

    return fail


def test_a_working_folder_that_was_deleted_is_no_defect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()

    assert run_command(["check", "--fast"]) == 4

    assert capsys.readouterr().err.startswith("millstream: the working folder does not exist any more\n")


@pytest.mark.parametrize("arguments", [["schema"], ["--help"], ["run", "--help"]])
def test_a_reader_that_ends_early_is_no_failure(arguments: list[str]) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "millstream", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as command:
        assert command.stdout is not None
        assert command.stderr is not None
        command.stdout.close()
        errors = command.stderr.read()

    assert (command.returncode, errors) == (0, b"")


def test_a_reader_that_ends_before_the_result_is_known_does_not_make_a_success_of_it(tmp_path: Path) -> None:
    spec = tmp_path / "pipeline.yml"
    spec.write_text(SPEC.replace("rate: 1", "rate: many"))

    with subprocess.Popen(
        [sys.executable, "-m", "millstream", "check", "--fast", "-f", spec],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as command:
        assert command.stdout is not None
        assert command.stderr is not None
        command.stdout.close()
        errors = command.stderr.read()

    assert (command.returncode, errors) == (141, b"")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["state", "show", "ticks"], 0),
        (["state", "-q", "show", "ticks"], 0),
        (["jars"], 0),
        (["state", "export", "ticks", "out"], 141),
        (["ps"], 0),
        (["reset"], 141),
    ],
)
def test_only_the_output_of_a_command_that_does_nothing_else_may_be_cut(
    arguments: list[str], code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def raise_broken_pipe(*_: object) -> None:
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")

    monkeypatch.setattr(click.Command, "invoke", raise_broken_pipe)
    monkeypatch.setattr("millstream.cli.main.silence_closed_pipe", lambda: True)

    assert run_command(arguments) == code


def test_a_connection_that_is_closed_is_not_the_end_of_the_output(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        "millstream.cli.explain.graph.open_project", raising(BrokenPipeError(errno.EPIPE, "Broken pipe"))
    )
    monkeypatch.setattr("millstream.cli.main.silence_closed_pipe", lambda: False)

    assert run_command(["graph"]) == NotReady.exit_code

    assert capsys.readouterr().err.startswith(
        "millstream: a connection to a server failed: [Errno 32] Broken pipe\n"
    )
