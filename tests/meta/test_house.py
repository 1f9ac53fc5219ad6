"""The plan of the house is the house."""

from __future__ import annotations

import re
import tomllib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

LONGEST = 400
# In two parts, so that this file does not hold what it looks for.
MACHINE = re.compile("|".join(["/wo" + "rk/", "/ro" + "ot/", "/ho" + r"me/\w", "/Us" + r"ers/\w"]))


def layers(root: Path) -> set[str]:
    contracts = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    stack = next(contract["layers"] for contract in contracts if contract["name"] == "Layers")
    return {room.strip() for layer in stack for room in layer.split("|")}


def test_every_layer_is_a_package_that_says_what_it_is_for(root: Path) -> None:
    silent = [
        room
        for room in sorted(layers(root))
        if not (root / "src/millstream" / room / "__init__.py").is_file()
        or not (root / "src/millstream" / room / "__init__.py").read_text().startswith('"""')
    ]

    assert silent == []


def test_every_package_is_a_layer(root: Path) -> None:
    rooms = {file.parent.name for file in (root / "src/millstream").glob("*/__init__.py")}

    assert rooms == layers(root)


def test_the_plan_of_the_house_names_every_room(root: Path) -> None:
    plan = (root / "docs/house.md").read_text()

    assert [room for room in sorted(layers(root)) if f"`{room}/`" not in plan] == []


def test_no_source_file_is_longer_than_400_lines(root: Path) -> None:
    long = {
        str(file.relative_to(root)): count
        for file in (root / "src").rglob("*.py")
        if (count := len(file.read_text().splitlines())) > LONGEST
    }

    assert long == {}


def test_every_module_opens_with_a_sentence(root: Path) -> None:
    mute = [
        str(file.relative_to(root))
        for file in (root / "src").rglob("*.py")
        if not file.read_text().startswith('"""')
    ]

    assert mute == []


def test_no_tracked_file_names_a_path_of_one_machine(root: Path, tracked: list[Path]) -> None:
    found = []
    for file in tracked:
        try:
            text = file.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        found += [f"{file.relative_to(root)}: {hit[0]}" for hit in MACHINE.finditer(text)]

    assert found == []


def test_the_table_of_tests_names_every_folder_of_tests(root: Path, tracked: list[Path]) -> None:
    folders = {file.relative_to(root).parts[1] for file in tracked if file.is_relative_to(root / "tests")}
    named = set(re.findall(r"^\| `tests/(\w+)` \|", (root / "CONTRIBUTING.md").read_text(), re.MULTILINE))

    assert named == {name for name in folders if (root / "tests" / name).is_dir()}
