"""Notebooks with cells that Python cannot read: what is said of them, and that the other cells are judged."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from millstream.checking.scripts.check import check_project_at, check_script
from millstream.checking.scripts.migration.migrate import migrate_script
from millstream.checking.syntax_check import find_syntax_error

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from millstream.checking.check import CheckResult

HEAD = 'rates = spark.readStream.format("rate").load()'
START = '.writeStream.option("checkpointLocation", "s3a://cp/{0}").start("s3a://lake/{0}")'


def write_notebook(file: Path, *cells: str) -> Path:
    """Write a notebook of Jupyter with these cells of code."""
    code = [{"cell_type": "code", "source": cell, "metadata": {}, "outputs": []} for cell in cells]
    file.write_text(json.dumps({"cells": code, "metadata": {}, "nbformat": 4}))
    return file


def list_findings(checked: CheckResult) -> list[tuple[str, str, str]]:
    return [
        (
            finding.code,
            str(finding.severity),
            f"{finding.span.file}:{finding.span.line}" if finding.span else "",
        )
        for finding in checked.findings
    ]


def test_a_cell_has_the_names_that_another_cell_imports_from_a_missing_module(
    spark: SparkSession, tmp_path: Path
) -> None:
    file = write_notebook(
        tmp_path / "tides.ipynb",
        "from acmetables import *",
        HEAD,
        "if not Table.exists(spark, 's3a://lake/tides'):\n    print('create')",
        f"rates{START.format('rates')}",
    )

    checked = check_script(spark, file)

    assert {severity for _, severity, _ in list_findings(checked)} == {"info"}
    assert [query.reason for query in checked.judged or ()] == [""]


def test_the_cells_beside_one_that_cannot_be_read_are_judged(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("millstream.checking.scripts.interception.call_sites._start", [tmp_path])
    file = write_notebook(
        tmp_path / "tides.ipynb",
        HEAD,
        "depths = rates.where(value > 3\nlimit = 4",
        f"rates{START.format('rates')}",
        f"depths.where(depths.value < limit){START.format('depths')}",
        'rates.groupBy("value").count().writeStream.format("console").start()',
    )

    checked = check_script(spark, file)

    assert [(code, place) for code, severity, place in list_findings(checked) if severity != "info"] == [
        ("MS114", "tides.ipynb#cell-2:1"),
        ("MS201", "tides.ipynb#cell-5:1"),
    ]
    assert [bool(query.reason) for query in checked.judged or ()] == [False, True, False]
    (message,) = [finding.message for finding in checked.findings if finding.code == "MS114"]
    assert message == "this cell cannot be read: '(' was never closed"


@pytest.mark.parametrize(
    ("cell", "language"),
    [
        ('val tides = spark.range(3)\nprintln("tides")', "Scala"),
        ("library(sparklyr)\ndeeper <- function(tides) { tides + 1 }", "R"),
        ("SELECT * FROM tides", "SQL"),
        ("cd /srv/port && ls -l", "a shell script"),
        ("await listen(rates)", "asynchronous code"),
    ],
)
def test_a_cell_in_another_language_is_a_note(
    spark: SparkSession, tmp_path: Path, cell: str, language: str
) -> None:
    checked = check_script(
        spark, write_notebook(tmp_path / "tides.ipynb", HEAD, cell, f"rates{START.format('rates')}")
    )

    assert [(finding.code, str(finding.severity), finding.message) for finding in checked.findings] == [
        ("MS114", "info", f"this cell is {language}, so it is not checked")
    ]
    assert [query.reason for query in checked.judged or ()] == [""]


def test_a_cell_with_a_mistake_in_python_is_not_taken_for_another_language(
    spark: SparkSession, tmp_path: Path
) -> None:
    cells = ["with open(x) as file\n    pass", "import asyncio as", "export = (1", "for x in y\n    pass"]

    checked = check_script(spark, write_notebook(tmp_path / "tides.ipynb", HEAD, *cells))

    errors = [finding for finding in checked.findings if str(finding.severity) == "error"]
    assert len(errors) == len(cells)
    assert all(finding.message.startswith("this cell cannot be read: ") for finding in errors)


def test_a_cell_whose_lines_are_indented_runs_as_in_jupyter(spark: SparkSession, tmp_path: Path) -> None:
    cell = f"    # All of the cell is indented.\n    if True:\n        rates{START.format('rates')}"

    checked = check_script(spark, write_notebook(tmp_path / "tides.ipynb", HEAD, cell))

    assert list_findings(checked) == []
    assert [query.reason for query in checked.judged or ()] == [""]


def test_an_export_and_the_notebook_that_it_runs_are_judged_too(spark: SparkSession, tmp_path: Path) -> None:
    cut = "# COMMAND ----------\n"
    (tmp_path / "setup.py").write_text(
        f"# Databricks notebook source\nlanding = 's3a://in'\n{cut}landing ==== 3\n{cut}lake = 's3a://lake'\n"
    )
    export = tmp_path / "tides.py"
    export.write_text(
        f"# Databricks notebook source\n# MAGIC %run ./setup\n{cut}{HEAD}\n{cut}if rates\n{cut}"
        "rates.writeStream.option('checkpointLocation', f'{landing}/cp').start(f'{lake}/rates')\n"
    )

    checked = check_script(spark, export)

    errors = [finding for finding in checked.findings if str(finding.severity) == "error"]
    assert [finding.span and finding.span.line for finding in errors] == [6, 4]
    assert [query.reason for query in checked.judged or ()] == [""]
    assert find_syntax_error(export) is None


def test_a_cell_of_a_declarative_notebook_does_not_end_it(spark: SparkSession, tmp_path: Path) -> None:
    table = "@dlt.table\ndef {}():\n    return spark.readStream.format('rate').load()"
    file = write_notebook(
        tmp_path / "tides.ipynb", "import dlt", table.format("low"), "display(low", table.format("high")
    )

    checked = check_project_at(spark, file)

    assert [(finding.code, str(finding.severity)) for finding in checked.findings] == [("MS114", "error")]
    assert [query.name for query in checked.judged or ()] == ["low", "high"]


def test_a_notebook_with_a_cell_that_cannot_be_read_becomes_a_project(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "tides.py"
    start = START.format("tides")
    cells = ["# Databricks notebook source", HEAD, "depths = rates.where(value > 3", f"rates{start}"]
    file.write_text("\n# COMMAND ----------\n".join(cells))

    project = migrate_script(spark, file)

    assert len(project.moved) == 1
    assert "the cell at line 5: Python cannot read it ('(' was never closed)" in project.left


@pytest.mark.parametrize(
    ("command", "is_deleted"),
    [
        ("!rm -rf {BASE}/tides/*", True),
        ("!rm -r -f /mnt/lake/cp", True),
        ("! sudo rm -Rf '$BASE' > log.txt", True),
        ("if True:\n    !rm --force -r $BASE/tides; ls", True),
        ("!rm {BASE}/tides/x", False),
        ("!rm -rf {OTHER}", False),
        ("!ls -r {BASE}/tides", False),
        ("!rm -rf {BASE}/tides2", False),
    ],
)
def test_a_checkpoint_that_a_command_of_the_shell_deletes_is_told_of(
    command: str, is_deleted: bool, spark: SparkSession, tmp_path: Path
) -> None:
    head = f'BASE = "/mnt/lake/cp"\n{HEAD}'
    start = 'rates.writeStream.option("checkpointLocation", f"{BASE}/tides").start("s3a://lake/tides")'
    file = write_notebook(tmp_path / "tides.ipynb", head, command, start)

    checked = check_script(spark, file)

    codes = [code for code, severity, _ in list_findings(checked) if severity != "info"]
    assert codes == ["MS403"] * is_deleted
