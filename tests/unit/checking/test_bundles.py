"""What a check reads of a Databricks bundle: the files of its pipelines, and the settings whose values it gives."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from millstream.checking.bundles import read_bundle
from millstream.checking.targets import find_targets

if TYPE_CHECKING:
    from pathlib import Path

ROOT = """bundle: {name: port}
variables:
  catalog: {default: shared}
  landing: {default: "/Volumes/${var.catalog}/landing"}
  owner: {description: nobody has set it}
targets:
  prod: {variables: {catalog: live}}
  dev: {default: true, variables: {catalog: tests}}
"""
RESOURCE = """resources:
  pipelines:
    arrivals:
      catalog: ${var.catalog}
      schema: port_${bundle.target}
      root_path: ../src
      libraries:
        - notebook: {path: ../src/bronze}
        - file: {path: ../src/silver.sql}
        - glob: {include: "${workspace.file_path}/src/gold/**"}
        - notebook: {path: ../src/lost}
      configuration:
        landing: ${var.landing}/ships
        owner: ${var.owner}
        level: "1"
"""


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    for name in ("bronze.py", "silver.sql", "gold/deep/a.py", "gold/b.sql", "gold/notes.md", "other.py"):
        file = tmp_path / "src" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("import dlt\n" if name.endswith(".py") else "CREATE STREAMING TABLE t;\n")
    (tmp_path / "databricks.yml").write_text(ROOT)
    (tmp_path / "resources").mkdir()
    (tmp_path / "resources" / "pipeline.yml").write_text(RESOURCE)
    return tmp_path


def test_a_bundle_gives_the_files_of_its_libraries_and_the_settings_that_it_knows(bundle: Path) -> None:
    pipelines = read_bundle(bundle / "resources" / "pipeline.yml")

    assert pipelines is not None
    names = [str(path.relative_to(bundle / "src")) for path in pipelines.sources]
    assert names == ["bronze.py", "silver.sql", "gold/b.sql", "gold/deep/a.py"]
    assert pipelines.missing == ["../src/lost"]
    assert pipelines.configuration == {"landing": "/Volumes/tests/landing/ships", "level": "1"}
    assert (pipelines.catalog, pipelines.database, pipelines.folder) == ("tests", "port_dev", bundle / "src")


@pytest.mark.parametrize(
    ("pattern", "files"),
    [("../src/gold/", ["gold/b.sql", "gold/deep/a.py"]), ("../src/b*.py", ["bronze.py"]), ("../src/**x", [])],
)
def test_a_pattern_is_a_folder_or_the_names_of_files(bundle: Path, pattern: str, files: list[str]) -> None:
    resource = bundle / "resources" / "pipeline.yml"
    text = f"resources:\n  pipelines:\n    a:\n      libraries: [{{glob: {{include: '{pattern}'}}}}]\n"
    resource.write_text(text)

    pipelines = read_bundle(resource)

    assert pipelines is not None
    assert [str(path.relative_to(bundle / "src")) for path in pipelines.sources] == files


def test_a_bundle_is_one_project_and_its_files_are_no_others(bundle: Path) -> None:
    targets = [(target.kind.value, str(target.path.relative_to(bundle))) for target in find_targets([bundle])]

    assert targets == [("project", "resources/pipeline.yml"), ("project", "src/other.py")]


def test_the_file_of_a_bundle_may_be_named_itself(bundle: Path) -> None:
    (target,) = find_targets([bundle / "resources" / "pipeline.yml"])

    assert (target.kind.value, target.path.name) == ("project", "pipeline.yml")


@pytest.mark.parametrize(
    "text", ["resources:\n  jobs: {}\n", "resources: [\n pipelines: libraries:\n", "a: 1\n"]
)
def test_another_file_declares_no_pipelines(tmp_path: Path, text: str) -> None:
    file = tmp_path / "job.yml"
    file.write_text(text)

    assert read_bundle(file) is None
