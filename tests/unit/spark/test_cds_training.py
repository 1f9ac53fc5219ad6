"""When a class-data archive is trained."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from millstream.spark import cds_training, resources, session

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
