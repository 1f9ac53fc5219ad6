"""The manifest of the VS Code extension and the command that it starts fit each other and `millstream lsp`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from millstream.cli.check.lsp import command


@pytest.fixture
def folder() -> Path:
    return Path(__file__).parents[3] / "editors" / "vscode"


@pytest.fixture
def manifest(folder: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((folder / "package.json").read_text())
    return loaded


def test_the_command_is_the_language_server_with_an_option_that_it_has(folder: Path) -> None:
    text = (folder / "src" / "serverCommand.ts").read_text()

    assert 'settings.spark ? ["lsp"] : ["lsp", "--no-spark"]' in text
    assert command.name == "lsp"
    assert "--no-spark" in [option for parameter in command.params for option in parameter.opts]


def test_each_setting_and_command_of_the_manifest_is_used_and_no_other(
    folder: Path, manifest: dict[str, Any]
) -> None:
    code = (folder / "src" / "extension.ts").read_text()
    contributed = manifest["contributes"]

    used = {f"millstream.{name}" for name in re.findall(r'configuration\.get\("(\w+)"', code)}
    assert used == set(contributed["configuration"]["properties"])
    registered = set(re.findall(r'registerCommand\("([\w.]+)"', code))
    assert registered == {entry["command"] for entry in contributed["commands"]}


def test_the_extension_starts_for_the_languages_that_the_server_reads(
    folder: Path, manifest: dict[str, Any]
) -> None:
    code = (folder / "src" / "extension.ts").read_text()

    selected = re.findall(r'language: "(\w+)"', code)
    assert manifest["activationEvents"] == [f"onLanguage:{language}" for language in selected]
    assert selected == ["yaml", "python"]


def test_the_package_is_built_where_the_manifest_looks_and_holds_little_else(
    folder: Path, manifest: dict[str, Any]
) -> None:
    assert f"--outfile={manifest['main'].removeprefix('./')}" in manifest["scripts"]["build"]
    assert "!dist/extension.js" in (folder / ".vscodeignore").read_text().splitlines()
    assert manifest["private"] is True


def test_its_packages_are_locked_without_the_address_of_a_registry(folder: Path) -> None:
    lock = json.loads((folder / "package-lock.json").read_text())["packages"]

    assert all("resolved" not in entry for entry in lock.values())
    manifest = json.loads((folder / "package.json").read_text())
    assert lock[""]["devDependencies"] == manifest["devDependencies"]
    assert all(re.fullmatch(r"[\d.]+", version) for version in manifest["devDependencies"].values())
