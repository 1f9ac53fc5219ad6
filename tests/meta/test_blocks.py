"""No page shows a piece of a spec that would not check.

Every `yaml` block of the docs, the READMEs and the connectors' pages is loaded and checked without Spark;
tests/spark/rules checks them with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml

from millstream.checking.check import check
from millstream.devstack.traffic import model
from millstream.diagnostics.finding import Severity
from millstream.pipeline.spec_file import LoadedSpec, load_spec, load_text
from millstream.testing.files import loader
from page_blocks import PAGES, PYTHON, ROOT, blocks, complete, project_of, shown_tests

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(("page", "text"), list(blocks()))
def test_every_yaml_block_checks(page: Path, text: str, tmp_path: Path) -> None:
    if "streams" in yaml.safe_load(text):
        file = tmp_path / model.FILE
        file.write_text(text)
        model.read_traffic(file)
        return
    specs, env = complete(page, text, tmp_path)
    error = []
    for candidate in specs:
        loaded = load_text("pipeline.yml", candidate, tmp_path, env)
        errors = complaints(loaded)
        if not errors:
            return
        error.append(errors)

    assert error == []


@pytest.mark.parametrize(("page", "text"), list(shown_tests()))
def test_every_test_file_of_a_page_can_be_read(page: Path, text: str) -> None:
    suite = loader.load_text("page.yml", text, project_of(page) / "tests" / "page.yml", lambda _: {})

    assert [finding.message for finding in suite.findings] == []


def complaints(loaded: LoadedSpec) -> list[str]:
    """The errors of a spec."""
    return [
        f"{finding.code} {finding.message}"
        for finding in check(loaded).findings
        if finding.severity is Severity.ERROR
    ]


SCRIPTS = [
    pytest.param(text, id=f"{page.relative_to(ROOT)}:{name}")
    for page in sorted(set(PAGES))
    for text, name in PYTHON.findall(page.read_text(encoding="utf-8"))
    if name == "pipeline.py"
]


@pytest.mark.parametrize("text", SCRIPTS)
def test_every_pipeline_in_python_checks(text: str, tmp_path: Path) -> None:
    file = tmp_path / "pipeline.py"
    file.write_text(text)

    assert complaints(load_spec(file, {})) == []
