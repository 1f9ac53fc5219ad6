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
        ("pyspark>=4.0,<5", "4"),
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


@pytest.mark.parametrize(
    ("file", "text", "number"),
    [
        (
            "jobs/other.py",
            'spark.config("spark.jars.packages", "org.apache.spark:spark-avro_2.12:3.4.1")',
            "3.4.1",
        ),
        ("jobs/report.ipynb", '{"source": ["!pip -q install pyspark==3.5.1"]}', "3.5.1"),
        ("jobs/report.ipynb", '{"text/html": ["<dd><code>v3.3.0</code></dd>"]}', "3.3.0"),
        ("infra/spark/Dockerfile", "FROM apache/spark:3.5.0", "3.5.0"),
        ("infra/kafka/Dockerfile", "RUN wget maven2/spark-sql-kafka-0-10_2.12/3.4.1/x.jar", "3.4.1"),
        ("resources/daily_job.yml", "spark_version: 15.4.x-scala2.12", "3"),
        ("resources/daily_job.yml", "spark_version: 17.1.x-scala2.13", None),
        ("glue/load.py", "from awsglue.context import GlueContext", "3"),
        ("venv/lib/pyspark/install.py", "pyspark==3.5.1", None),
        ("README.md", "- Apache Spark 3.x (PySpark) with Structured Streaming", "3"),
        ("README.md", "Apache **Spark Streaming** 3.5.1", "3.5.1"),
        ("README.md", "Needs Spark 3.4+ and Kafka", None),
        ("README.md", "Needs Spark 3.4 or later", None),
        ("README.md", "Apache Spark, Python 3.8", None),
    ],
)
def test_another_file_of_the_project_tells_the_version(
    tmp_path: Path, file: str, text: str, number: str | None
) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "jobs").mkdir()
    (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / file).write_text(text)

    version = find_spark_version(tmp_path / "jobs" / "job.py", "")

    assert (version and version.number) == number


def test_scripts_for_two_versions_tell_none(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "old.py").write_text("# pyspark 3.5.1\n")
    (tmp_path / "recent.py").write_text("# pyspark 4.0.0\n")

    assert find_spark_version(tmp_path / "job.py", "") is None


def test_without_a_project_only_files_of_the_same_folder_tell_the_version(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "job.py").write_text("# pyspark 3.5.1\n")

    assert find_spark_version(tmp_path / "job.py", "") is None

    (tmp_path / "beside.py").write_text("# pyspark 3.4.1\n")
    version = find_spark_version(tmp_path / "job.py", "")

    assert version is not None
    assert version.number == "3.4.1"
