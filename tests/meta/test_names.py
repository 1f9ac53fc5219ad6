"""A name stands for one thing in the whole package."""

from __future__ import annotations

import ast
from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def public_classes(package: Path) -> dict[str, list[str]]:
    """The files that define each public class, from the top of the package."""
    files: dict[str, list[str]] = defaultdict(list)
    for file in sorted(package.rglob("*.py")):
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                files[node.name].append(str(file.relative_to(package)))
    return files


def test_a_class_that_two_files_define_is_noticed(tmp_path: Path) -> None:
    for name in ("one.py", "two.py"):
        (tmp_path / name).write_text("class Report: ...\n\n\nclass _Private: ...\n")

    assert public_classes(tmp_path) == {"Report": ["one.py", "two.py"]}


def test_no_public_class_name_stands_twice(root: Path) -> None:
    classes = public_classes(root / "src/millstream")

    assert "Pipeline" in classes
    assert {name: files for name, files in classes.items() if len(files) > 1} == {}
