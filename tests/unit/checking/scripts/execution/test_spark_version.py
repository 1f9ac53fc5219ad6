"""The version of Spark that a script is written for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from millstream.checking.scripts.execution.spark_version import find_spark_version

if TYPE_CHECKING:
    from pathlib import Path


def test_a_release_of_emr_tells_the_version(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "jobs").mkdir()
    (tmp_path / "README.md").write_text("Runs on emr-7.1.0, with all of Spark.\n")

    version = find_spark_version(tmp_path / "jobs" / "job.py", "")

    assert version is not None
    assert (version.number, version.file, version.has_ansi_mode) == ("3", "README.md", False)


def test_the_folder_of_spark_that_a_script_names_tells_the_version(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("pyspark==4.0.0\n")

    version = find_spark_version(tmp_path / "job.py", 'findspark.init("/opt/spark-3.1.1-bin-hadoop2.7")\n')

    assert version is not None
    assert (version.number, version.file) == ("3.1.1", "job.py")


@pytest.mark.parametrize(
    ("requirement", "number"),
    [
        ("pyspark>=3.5,<4.0", "3"),
        ('pyspark = ">=3.4, <4"', "3"),
        ("pyspark[sql] ~= 3.5.1", "3.5.1"),
        ("pyspark<5", None),
        ("pyspark>=4.0,<5", None),
        ("pyspark>=3.5", None),
        ("pyspark<4.1", None),
    ],
)
def test_a_requirement_tells_the_version_if_it_ends_before_spark_4(
    tmp_path: Path, requirement: str, number: str | None
) -> None:
    (tmp_path / "requirements.txt").write_text(f"requests\n{requirement}\n")

    version = find_spark_version(tmp_path / "job.py", "")

    assert (version and version.number) == number
