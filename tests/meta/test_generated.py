"""The reference is what the code says."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

import pytest

from millstream.connectors import registry

if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType


@pytest.fixture(scope="module")
def generate(root: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate", root / "tools/generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_generated_page_is_current(root: Path, generate: ModuleType) -> None:
    stale = [
        str(path)
        for path, text in generate.pages().items()
        if not (root / path).is_file() or (root / path).read_text(encoding="utf-8") != text
    ]

    assert stale == [], "run: python tools/generate.py"


def test_the_same_code_gives_the_same_pages(generate: ModuleType) -> None:
    assert generate.pages() == generate.pages()


def test_no_page_is_left_of_a_kind_that_is_gone(root: Path, generate: ModuleType) -> None:
    kept = {
        path.relative_to(root)
        for folder in ("sources", "sinks")
        for path in (root / generate.OUT / folder).iterdir()
    }

    assert kept <= set(generate.pages())


@pytest.mark.parametrize("role", ["source", "sink"])
def test_every_connector_has_a_page_of_prose(root: Path, role: str) -> None:
    kinds = registry.sources() if role == "source" else registry.sinks()
    folders = {registry.folder(kind) for kind in kinds.values()}

    assert [
        name
        for name in sorted(folders)
        if not (root / f"src/millstream/connectors/{name}/{role}.md").is_file()
    ] == []
