"""Small scripts with the traits of other people's: what is said of each, and how many of its queries are judged."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from millstream.checking.scripts.check import check_script
from millstream.diagnostics.judged_query import format_judged

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from millstream.checking.check import CheckResult

FOLDER = Path(__file__).parents[3] / "scripts" / "traits"
_JUDGED = re.compile(r"^# judged: (.*)$", re.MULTILINE)
_MARK = re.compile(r"# (error|warning|info): \[(MS\d{3})\]")


def list_findings(checked: CheckResult, file: Path) -> list[tuple[int, str, str]]:
    """Line, severity and code of each finding in a file."""
    return sorted(
        (one.span.line, str(one.severity), one.code)
        for one in checked.findings
        if one.span and Path(one.span.file).name == file.name
    )


def marked(file: Path) -> list[tuple[int, str, str]]:
    """Line, severity and code of each comment in a file."""
    lines = enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
    return sorted((number, mark[1], mark[2]) for number, line in lines for mark in _MARK.finditer(line))


@pytest.mark.parametrize("name", sorted(file.name for file in FOLDER.glob("*.py")))
def test_a_script_is_judged_as_its_comments_say(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(FOLDER)
    file = FOLDER / name

    checked = check_script(spark, file)

    assert list_findings(checked, file) == marked(file)
    assert [finding.fix for finding in checked.findings if finding.fix != finding.fix.strip()] == []
    judged = _JUDGED.search(file.read_text(encoding="utf-8"))
    assert judged
    assert format_judged(checked.judged or ()).startswith(f"{judged[1]} quer")


def test_the_session_in_a_function_of_batches_is_that_of_the_batch(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(FOLDER)

    checked = check_script(spark, FOLDER / "names_in_batches.py")

    assert [finding.fix for finding in checked.findings if "'spark'" in finding.message] == [
        "use the session of the batch, which is .sparkSession of the function's DataFrame"
    ]


def test_a_finding_in_a_package_of_the_repository_has_its_place(spark: SparkSession) -> None:
    checked = check_script(spark, FOLDER / "package_of_the_repository.py")

    assert list_findings(checked, FOLDER.parent / "traitlib" / "sources.py") == [(2, "error", "MS311")]


def test_an_exit_names_the_error_that_the_script_caught_before(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(FOLDER)

    checked = check_script(spark, FOLDER / "exit_after_a_caught_error.py")

    reasons = [finding.why for finding in checked.findings if finding.code == "MS114"]
    assert reasons == [
        "the last error that it catches, at exit_after_a_caught_error.py:11, is TypeError: exceptions must derive "
        "from BaseException"
    ]


def test_a_file_in_the_folder_of_the_script_is_read_wherever_the_check_runs(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    checked = check_script(spark, FOLDER / "settings_next_to_the_script.py")

    assert format_judged(checked.judged or ()).startswith("1 of 1 quer")
    assert not any("settings" in finding.message for finding in checked.findings)
    assert Path.cwd() == tmp_path


def test_a_script_that_looks_for_its_repository_runs_in_its_own_folder(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    checked = check_script(spark, FOLDER / "folder_found_from_the_current_one.py")

    assert format_judged(checked.judged or ()).startswith("1 of 1 quer")
    assert not checked.findings
    assert Path.cwd() == tmp_path


def test_an_error_that_only_recent_versions_of_spark_raise_says_so(
    spark: SparkSession, tmp_path: Path
) -> None:
    job = tmp_path / "job.py"
    job.write_text(
        "from pyspark.sql import SparkSession\n\n"
        "spark = SparkSession.builder.getOrCreate()\n"
        'prices = spark.readStream.schema("high STRING, low STRING").csv("s3a://lake/prices")\n'
        'prices.where("high - low > 10").writeStream.format("console").start().awaitTermination()\n'
    )

    (finding,) = check_script(spark, job).findings

    assert (finding.code, finding.fix) == (
        "MS114",
        "cast the text to a number first; before version 4, Spark did so by itself",
    )
