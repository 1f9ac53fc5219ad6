"""When a class-data archive is trained."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from millstream.spark import cds_archive, cds_training, resources, session

if TYPE_CHECKING:
    from pathlib import Path


def test_it_waits_for_half_of_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "available_cores", lambda: 2)
    pauses: list[float] = []
    loads = iter([3.0, 1.4, 1.0])

    assert cds_training.wait_until_idle(lambda: next(loads), pauses.append)

    assert pauses == [3 * cds_training.LOOK, cds_training.LOOK, cds_training.LOOK]


def test_a_machine_that_is_never_idle_is_asked_again_at_a_later_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def boot(*_: object) -> None:
        pytest.fail("it trained beside a busy machine")

    monkeypatch.setattr(session, "boot_training", boot)
    target = tmp_path / "a.jsa"

    assert not cds_training.train_archive(
        target, lambda: cds_training.wait_until_idle(lambda: 99.0, lambda _: None)
    )

    assert list(tmp_path.iterdir()) == []


def test_a_training_whose_starter_has_no_more_work_does_not_wait_for_an_idle_machine() -> None:
    pauses: list[float] = []

    def released(seconds: float) -> bool:
        pauses.append(seconds)
        return True

    assert cds_training.wait_until_idle(lambda: 99.0, released)

    assert pauses == [3 * cds_training.LOOK]


def test_a_training_ends_when_a_command_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MILLSTREAM_HOME", str(tmp_path))
    glances: list[float] = []
    ends: list[int] = []

    def pause(seconds: float) -> None:
        glances.append(seconds)
        if len(glances) == 3:
            cds_archive.announce_start()

    cds_training.give_way(lambda: ends.append(len(glances)), pause)

    assert ends == [3]


def test_the_next_training_removes_what_a_killed_one_has_left(tmp_path: Path) -> None:
    target = tmp_path / "a.jsa"
    (tmp_path / "a.4711").write_bytes(b"half an archive")
    (tmp_path / "b.4712").write_bytes(b"the draft of another archive")

    cds_training.train_archive(target, lambda: False)

    assert [path.name for path in tmp_path.iterdir()] == ["b.4712"]
