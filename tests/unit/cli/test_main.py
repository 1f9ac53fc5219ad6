"""What the command line makes of an error: exit codes, and whose fault it says it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from millstream.cli.main import DEFECT, run_command
from millstream.diagnostics.failure import CheckpointError, InvalidInput, MillstreamError, NotReady

if TYPE_CHECKING:
    from pathlib import Path

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
