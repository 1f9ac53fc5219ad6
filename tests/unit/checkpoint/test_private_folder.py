"""What Millstream keeps is open to its owner alone, whatever the umask and whatever it was before."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import pytest

from millstream.checkpoint.lock import CheckpointLock
from millstream.checkpoint.private_folder import make_private
from millstream.cli.main import run_command

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(autouse=True)
def _open_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def mode(path: Path) -> str:
    return f"{stat.S_IMODE(path.stat().st_mode):o}"


def test_a_folder_is_closed_with_each_millstream_above_it(tmp_path: Path) -> None:
    (tmp_path / "shop/.millstream").mkdir(parents=True)

    make_private(tmp_path / "shop/.millstream/demo/ecommerce/.millstream/logs")

    assert mode(tmp_path / "shop") == "755"
    for name in (
        ".millstream",
        ".millstream/demo/ecommerce/.millstream",
        ".millstream/demo/ecommerce/.millstream/logs",
    ):
        assert mode(tmp_path / "shop" / name) == "700"


def test_the_checkpoint_of_a_query_is_closed_where_it_is_outside_of_the_project(tmp_path: Path) -> None:
    folder = tmp_path / "ck" / "orders"
    folder.mkdir(parents=True, mode=0o755)

    with CheckpointLock(folder, "shop.orders"):
        assert mode(folder) == "700"
        assert mode(folder / "_millstream/lock") == "600"
    assert mode(tmp_path / "ck") == "755"


def test_a_run_closes_the_folder_of_a_project_that_was_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / ".millstream").mkdir()
    (tmp_path / "pipeline.yml").write_text(
        "name: shop\nsources:\n  ticks: {rate: 1}\nqueries:\n"
        "  ticks: {to: {postgres: {url: 'postgresql://me@127.0.0.1:1/x', table: t}}}\n"
    )
    monkeypatch.chdir(tmp_path)

    assert run_command(["run", "--no-page"]) == 4

    assert "127.0.0.1:1" in capfd.readouterr().err
    assert mode(tmp_path / ".millstream") == "700"


def test_the_schema_of_a_project_closes_it_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pipeline.yml").write_text("name: shop\n")

    assert run_command(["schema", "--write"]) == 0

    assert mode(tmp_path / ".millstream") == "700"
