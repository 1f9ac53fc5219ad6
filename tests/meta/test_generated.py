"""The reference is what the code says."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from millstream.connectors import registry

if TYPE_CHECKING:
    from types import ModuleType


@pytest.fixture(scope="module")
def generate(root: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate", root / "tools/generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_generated_page_is_current(root: Path) -> None:
    # In a process of its own: `typing` caches the first of two equal unions, so that what was imported before
    # may decide the order in a schema.
    plain = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    result = subprocess.run(
        [sys.executable, "tools/generate.py", "--check"],
        cwd=root,
        env=plain,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (result.returncode, result.stdout) == (0, ""), result.stdout + result.stderr


def test_the_same_code_gives_the_same_pages(generate: ModuleType) -> None:
    assert generate.pages() == generate.pages()


def test_no_page_is_left_of_a_kind_that_is_gone(root: Path, generate: ModuleType) -> None:
    remaining = {
        path.relative_to(root)
        for folder in ("sources", "sinks")
        for path in (root / generate.OUT / folder).iterdir()
    }

    assert remaining <= set(generate.pages())


@pytest.mark.parametrize("role", ["source", "sink"])
def test_every_connector_has_a_page_of_prose(root: Path, role: str) -> None:
    kinds = registry.sources() if role == "source" else registry.sinks()
    folders = {registry.connector_folder(kind) for kind in kinds.values()}

    assert [
        name
        for name in sorted(folders)
        if not (root / f"src/millstream/connectors/{name}/{role}.md").is_file()
    ] == []


@pytest.mark.parametrize(
    "page",
    sorted(Path(__file__).parents[2].glob("docs/reference/s*s/*.md")),
    ids=lambda page: f"{page.parent.name}/{page.stem}",
)
def test_the_first_pipeline_of_a_kinds_page_uses_that_kind(page: Path) -> None:
    block = re.search(r"^```yaml\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert block is not None
    spec = yaml.safe_load(block[1])
    sinks = [query["to"] for query in spec["queries"].values()]
    entries = (
        list(spec["sources"].values())
        if page.parent.name == "sources"
        else [entry for to in sinks for entry in (to if isinstance(to, list) else [to])]
    )

    assert page.stem in {name for entry in entries for name in entry}
