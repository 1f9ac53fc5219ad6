"""docs/architecture.md and the source files agree."""

from __future__ import annotations

import re
import tomllib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

LONGEST = 400
MOST_MODULES = 13
# In two parts, so that this file does not hold what it looks for.
MACHINE = re.compile("|".join(["/wo" + "rk/", "/ro" + "ot/", "/ho" + r"me/\w", "/Us" + r"ers/\w"]))

# Attributes of PySpark that begin with an underscore and lead into the JVM or to its one session.
PRIVATE = re.compile(
    r"\._(?:jvm|jdf|jsc|jsq|jsparkSession|jwrite|gateway|instantiatedSession|active_spark_context)\b"
)
# The second puts a session in the place of all that PySpark knows, while a script is checked.
MAY_USE_PRIVATE = ("src/millstream/spark/internals.py", "src/millstream/checking/scripts/runner.py")


def layers(root: Path) -> set[str]:
    contracts = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    stack = next(contract["layers"] for contract in contracts if contract["name"] == "Layers")
    return {package.strip() for layer in stack for package in layer.split("|")}


def is_connector(folder: str) -> bool:
    """Is it the folder of a system, as the registry finds them: any number, each of the same files?"""
    return folder.startswith("connectors/") and folder != "connectors/api"


def test_every_layer_is_a_package_that_says_what_it_is_for(root: Path) -> None:
    silent = [
        package
        for package in sorted(layers(root))
        if not (root / "src/millstream" / package / "__init__.py").is_file()
        or not (root / "src/millstream" / package / "__init__.py").read_text().startswith('"""')
    ]

    assert silent == []


def test_every_package_is_a_layer(root: Path) -> None:
    packages = {file.parent.name for file in (root / "src/millstream").glob("*/__init__.py")}

    assert packages == layers(root)


def test_the_architecture_page_names_every_package_and_folder(root: Path) -> None:
    page = (root / "docs/architecture.md").read_text()
    package = root / "src/millstream"
    folders = sorted(str(file.parent.relative_to(package)) for file in package.glob("*/**/__init__.py"))

    assert [folder for folder in folders if not is_connector(folder) and f"`{folder}/`" not in page] == []


def test_the_paths_that_the_architecture_page_names_exist(root: Path) -> None:
    page = (root / "docs/architecture.md").read_text()
    matches = set(re.findall(r"`([\w/]+/(?:\w+\.py)?)`", page)) | set(
        re.findall(r"\b(\w+(?:/\w+)+\.py)\b", page)
    )
    bases = (root, root / "src/millstream")

    assert matches
    assert [path for path in sorted(matches) if not any((base / path).exists() for base in bases)] == []


def test_no_source_file_is_longer_than_400_lines(root: Path) -> None:
    long = {
        str(file.relative_to(root)): count
        for file in (root / "src").rglob("*.py")
        if (count := len(file.read_text().splitlines())) > LONGEST
    }

    assert long == {}


def test_no_source_folder_but_the_rules_holds_more_than_13_modules(root: Path) -> None:
    package = root / "src/millstream"
    folders = [file.parent for file in package.rglob("__init__.py")]
    modules = {
        str(folder.relative_to(package)): len(list(folder.glob("*.py"))) - 1
        for folder in folders
        if folder != package / "analysis/rules"
    }

    assert {folder: count for folder, count in modules.items() if count > MOST_MODULES} == {}


def test_every_module_opens_with_a_sentence(root: Path) -> None:
    mute = [
        str(file.relative_to(root))
        for file in (root / "src").rglob("*.py")
        if not file.read_text().startswith('"""')
    ]

    assert mute == []


def test_one_module_uses_private_parts_of_pyspark(root: Path) -> None:
    places = [
        f"{path.relative_to(root)}:{number}"
        for path in sorted((root / "src/millstream").rglob("*.py"))
        if str(path.relative_to(root)) not in MAY_USE_PRIVATE
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if PRIVATE.search(line.partition("#")[0])
    ]

    assert places == []


def test_no_tracked_file_names_a_path_of_one_machine(root: Path, tracked: list[Path]) -> None:
    actual = []
    for file in tracked:
        try:
            text = file.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        actual += [f"{file.relative_to(root)}: {hit[0]}" for hit in MACHINE.finditer(text)]

    assert actual == []


def test_the_table_of_tests_names_every_folder_of_tests(root: Path, tracked: list[Path]) -> None:
    folders = {file.relative_to(root).parts[1] for file in tracked if file.is_relative_to(root / "tests")}
    matches = set(re.findall(r"^\| `tests/(\w+)` \|", (root / "CONTRIBUTING.md").read_text(), re.MULTILINE))

    assert matches == {name for name in folders if (root / "tests" / name).is_dir()}
