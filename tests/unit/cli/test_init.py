"""A project of one's own, from the starter or an example."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from millstream.cli.init import copy_example, example_names
from millstream.cli.main import run_command
from millstream.diagnostics.failure import InvalidInput

if TYPE_CHECKING:
    from pathlib import Path


def test_the_starter_and_the_shop_can_be_copied() -> None:
    assert {"starter", "ecommerce"} <= set(example_names())


@pytest.mark.parametrize("name", example_names())
def test_a_copied_example_is_right_as_it_is(name: str, tmp_path: Path) -> None:
    assert run_command(["init", str(tmp_path / "mine"), "--from", name]) == 0

    assert run_command(["check", "--fast", "-f", str(tmp_path / "mine")]) == 0
    assert (tmp_path / "mine" / ".millstream" / "schema.json").is_file()


def test_a_folder_with_a_pipeline_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "pipeline.yml").write_text("name: mine\n")

    with pytest.raises(InvalidInput, match=r"pipeline\.yml exists already, and init changes no file"):
        copy_example("starter", tmp_path)
    assert (tmp_path / "pipeline.yml").read_text() == "name: mine\n"
    assert [path.name for path in tmp_path.iterdir()] == ["pipeline.yml"]


@pytest.mark.parametrize("name", ["README.md", "transforms.py", "tests/readings.yml", "tests"])
def test_a_file_that_exists_is_named_and_nothing_is_copied(name: str, tmp_path: Path) -> None:
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    file.write_text("mine\n")

    with pytest.raises(InvalidInput, match=rf"{name} exists already, and init changes no file"):
        copy_example("sensors", tmp_path)

    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [file]
    assert file.read_text() == "mine\n"


def test_a_link_to_a_file_that_is_missing_is_not_written_through(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "README.md").symlink_to(tmp_path / "elsewhere.md")

    with pytest.raises(InvalidInput, match=r"README\.md exists already"):
        copy_example("starter", folder)

    assert not (tmp_path / "elsewhere.md").exists()


def test_the_gitignore_of_a_repository_stays_and_what_it_lacks_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, text in (("mine", "*.log\n"), ("complete", "lake/\n")):
        (tmp_path / name).mkdir()
        (tmp_path / name / ".gitignore").write_text(text)

        assert run_command(["init", str(tmp_path / name)]) == 0

        assert (tmp_path / name / ".gitignore").read_text() == text
        assert (tmp_path / name / "pipeline.yml").is_file()
    hint = f"{tmp_path / 'mine' / '.gitignore'} is not changed; add to it: lake/"
    error = capsys.readouterr().err
    assert hint in error
    assert error.count("is not changed") == 1


def test_an_unknown_example_is_answered_with_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput) as error:
        copy_example("nothing", tmp_path)

    assert "ecommerce" in error.value.fix


def test_an_examples_notebook_is_copied_with_it(tmp_path: Path) -> None:
    copy_example("starter", tmp_path)

    assert (tmp_path / "notebook.ipynb").is_file()


def test_what_a_run_left_behind_is_not_copied(tmp_path: Path) -> None:
    copy_example("ecommerce", tmp_path)

    assert not {"lake", ".millstream", "__pycache__"} & {path.name for path in tmp_path.iterdir()}


def test_the_next_command_has_the_folder_in_quotes_if_it_needs_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    run_command(["init", "my shop"])
    run_command(["init", "shop"])

    errors = capsys.readouterr().err
    assert "next: cd 'my shop' && millstream check\n" in errors
    assert "next: cd shop && millstream check\n" in errors


@pytest.mark.parametrize(
    ("folder", "name"), [("hello", "hello"), ("my-shop", "my-shop"), ("2026", "starter"), ("a b", "starter")]
)
def test_a_project_has_the_name_of_its_folder_if_that_can_be_one(
    folder: str, name: str, tmp_path: Path
) -> None:
    assert run_command(["init", str(tmp_path / folder)]) == 0

    spec = (tmp_path / folder / "pipeline.yml").read_text(encoding="utf-8")
    assert f"\nname: {name}\n" in spec
    assert (tmp_path / folder / "README.md").read_text(encoding="utf-8").startswith(f"# {name}\n")
    assert run_command(["check", "--fast", "-f", str(tmp_path / folder)]) == 0
