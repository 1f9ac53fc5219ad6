from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from millstream.cli.test import watch
from millstream.diagnostics.failure import NotReady
from millstream.testing.model import Outcome
from millstream.testing.runner.runner import Runner

if TYPE_CHECKING:
    from pathlib import Path

    from millstream.testing.model import Case

SPEC = "name: a\nsources: {ticks: {rate: {}}}\nqueries: {ticks: {to: {console: {}}}}\n"
TESTS = "tests:\n  a tick comes: {steps: [{feed: {ticks: [{value: 1}]}}]}\n"


class Desk:
    """Someone who saves a file each time Millstream waits, and then goes home."""

    def __init__(self, *saves: tuple[Path, str]) -> None:
        self.saves = [*saves]
        self.seen: list[bool] = []

    def waits(self, look: Any, seen: Any) -> None:
        """Stand in for the wait: save the next file, which the look must see."""
        if not self.saves:
            raise KeyboardInterrupt
        file, text = self.saves.pop(0)
        file.write_text(text)
        self.seen.append(look() != seen)


def watched(monkeypatch: pytest.MonkeyPatch, folder: Path, desk: Desk, words: str | None = None) -> list[str]:
    """The names of the tests that are played while files of the folder are saved."""
    outcome: list[str] = []

    def play(_: Runner, case: Case, **__: Any) -> Outcome:
        outcome.append(case.name)
        return Outcome(case, (), 0.0)

    monkeypatch.chdir(folder)
    monkeypatch.setattr(Runner, "spark", lambda *_: None)
    monkeypatch.setattr(Runner, "play", play)
    monkeypatch.setattr(watch, "wait_for_change", desk.waits)
    assert watch.watch_tests((), words, None, stop=False) == 0
    return outcome


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "pipeline.yml").write_text(SPEC)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "ticks.yml").write_text(TESTS)
    return tmp_path


def test_tests_are_played_again_when_their_file_or_their_pipeline_is_saved(
    monkeypatch: pytest.MonkeyPatch, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    desk = Desk(
        (project / "tests" / "ticks.yml", TESTS.replace("a tick comes", "another comes")),
        (project / "pipeline.yml", f"# saved\n{SPEC}"),
    )

    outcome = watched(monkeypatch, project, desk)

    assert outcome == ["a tick comes", "another comes", "another comes"]
    assert desk.seen == [True, True]
    assert capsys.readouterr().err.count("waiting for changes; press Ctrl-C to stop") == 3


def test_an_error_does_not_control_the_terminal(
    monkeypatch: pytest.MonkeyPatch, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: Any) -> None:
        raise NotReady("http://ci:hunter2@mirror/ sends '\x1b[2J'", "name another one")

    monkeypatch.setattr(watch, "load_tests", fail)

    watched(monkeypatch, project, Desk())

    errors = capsys.readouterr().err
    assert "hunter2" not in errors
    assert "sends '\\x1b[2J'\n  fix: name another one\n" in errors


def test_a_file_that_is_wrong_for_a_moment_does_not_end_it(
    monkeypatch: pytest.MonkeyPatch, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = project / "tests" / "ticks.yml"
    desk = Desk((file, TESTS.replace("feed", "fed")), (file, TESTS))

    outcome = watched(monkeypatch, project, desk)

    assert outcome == ["a tick comes", "a tick comes"]
    assert "write 'feed'" in capsys.readouterr().err


def test_the_first_test_of_a_project_is_seen(
    monkeypatch: pytest.MonkeyPatch, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = project / "tests" / "ticks.yml"
    file.unlink()
    desk = Desk((file, TESTS))

    outcome = watched(monkeypatch, project, desk)

    assert outcome == ["a tick comes"]
    assert desk.seen == [True]
    assert "there is no test file" in capsys.readouterr().err


def test_a_renamed_test_is_seen_again(monkeypatch: pytest.MonkeyPatch, project: Path) -> None:
    file = project / "tests" / "ticks.yml"
    desk = Desk((file, TESTS.replace("comes", "goes")), (file, TESTS))

    outcome = watched(monkeypatch, project, desk, words="comes")

    assert outcome == ["a tick comes", "a tick comes"]
    assert desk.seen == [True, True]


def test_a_notebook_that_is_saved_starts_no_round(monkeypatch: pytest.MonkeyPatch, project: Path) -> None:
    notebook = project / "explore.ipynb"
    notebook.write_text("{}")
    desk = Desk((notebook, '{"cells": []}'))

    watched(monkeypatch, project, desk)

    assert desk.seen == [False]
