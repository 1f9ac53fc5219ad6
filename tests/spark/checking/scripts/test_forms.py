"""The forms in which other people's pipelines come: notebooks, exports and modules of packages."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from millstream.checking.scripts.check import check_script

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from millstream.checking.check import CheckResult

FORMS = Path(__file__).parents[3] / "scripts" / "forms"


@pytest.fixture(autouse=True)
def _in_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(FORMS)
    monkeypatch.setattr("millstream.checking.scripts.interception.call_sites._start", [FORMS])


def places(checked: CheckResult) -> list[tuple[str, str]]:
    """Code and place of each error and warning."""
    return [
        (one.code, f"{one.span.file}:{one.span.line}" if one.span else "")
        for one in checked.findings
        if str(one.severity) != "info"
    ]


def test_a_finding_in_a_notebook_has_its_cell(spark: SparkSession) -> None:
    checked = check_script(spark, FORMS / "clicks.ipynb")

    assert places(checked) == [("MS201", "clicks.ipynb#cell-4:1")]
    assert checked.texts["clicks.ipynb#cell-4"].startswith("counts = ")
    assert [query.name for query in checked.judged or ()] == ["query"]


def test_a_checkpoint_that_another_cell_deletes_is_told_of(spark: SparkSession) -> None:
    checked = check_script(spark, FORMS / "landing.ipynb")

    assert places(checked) == [("MS403", "landing.ipynb#cell-3:2")]
    message = next(one.message for one in checked.findings if one.code == "MS403")
    assert message.endswith("is deleted at each run of the notebook, in landing.ipynb#cell-2:2")


def test_an_export_runs_its_other_notebook_its_sql_and_its_widgets(spark: SparkSession) -> None:
    checked = check_script(spark, FORMS / "export.py")

    assert places(checked) == [("MS201", "export.py:24")]
    assert [query.reason for query in checked.judged or ()] == [""]


def test_an_export_of_fabric_is_a_notebook_with_its_names(spark: SparkSession) -> None:
    file = "fabric/tides.Notebook/notebook-content.py"

    checked = check_script(spark, FORMS / file)

    assert places(checked) == [("MS114", f"{file}:26"), ("MS201", f"{file}:51")]
    assert [query.reason for query in checked.judged or ()] == [""]


def test_a_script_with_relative_imports_is_a_module_of_its_package(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder = tmp_path / "src" / "consumer"
    folder.mkdir(parents=True)
    (tmp_path / "pyproject.toml").touch()
    (folder / "stream.py").write_text(
        "def start(spark):\n    rates = spark.readStream.format('rate').load()\n"
        "    return rates.writeStream.option('checkpointLocation', '/cp').start('/lake/rates')\n"
    )
    file = folder / "__main__.py"
    file.write_text(
        "from pyspark.sql import SparkSession\n\nfrom .stream import start\n\n"
        "if __name__ == '__main__':\n    start(SparkSession.builder.getOrCreate()).awaitTermination()\n"
    )

    checked = check_script(spark, file)

    assert places(checked) == []
    assert [query.reason for query in checked.judged or ()] == [""]


def test_names_of_a_notebook_that_is_not_here_are_not_known(spark: SparkSession) -> None:
    checked = check_script(spark, FORMS / "lost_run.py")

    assert [bool(query.reason) for query in checked.judged or ()] == [False, False]
    assert places(checked) == [("MS311", "lost_run.py:9")]
