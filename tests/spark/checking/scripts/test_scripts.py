"""Scripts in the style of tutorials, checked as they are: what a comment in them says is found, and nothing else."""

from __future__ import annotations

import re
import shutil
import socket
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from millstream.checking.scripts.check import check_script

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from millstream.checking.check import CheckResult

HOME = Path(__file__).parents[3] / "scripts"
ARGUMENTS = {
    "window_counts.py": (),
    "socket_words.py": ("broker.invalid", "9999"),
    "upsert_jdbc.py": (),
    "files_to_lake.py": ("--input", "landing", "--output", "lake"),
    "two_queries.py": (),
    "sibling_modules.py": (),
    "ad_join.py": (),
    "rate_dedup.py": (),
    "sql_views.py": (),
    "medallion.py": (),
}
_MARK = re.compile(r"(?:#|--) (error|warning|info): \[(MS\d{3})\]")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the scripts and nothing else."""
    folder = tmp_path_factory.mktemp("scripts") / "jobs"
    return Path(shutil.copytree(HOME, folder, ignore=shutil.ignore_patterns("__pycache__", "projects")))


@pytest.fixture(scope="module")
def check_answers(spark: SparkSession, home: Path) -> Any:
    """Checks a script once for all tests."""

    @cache
    def check(name: str) -> CheckResult:
        return check_script(spark, home / name, ARGUMENTS[name])

    return check


@pytest.fixture(params=ARGUMENTS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def marked(files: Iterator[Path]) -> list[tuple[str, int, str, str]]:
    """File, line, severity and code of each comment."""
    return sorted(
        (file.name, number, match[1], match[2])
        for file in files
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
        for match in _MARK.finditer(line)
    )


def list_findings(checked: CheckResult) -> list[tuple[str, int, str, str]]:
    return sorted(
        (
            Path(finding.span.file).name if finding.span else "",
            finding.span.line if finding.span else 0,
            str(finding.severity),
            finding.code,
        )
        for finding in checked.findings
    )


def test_a_script_gives_what_its_comments_say_on_their_lines(
    name: str, home: Path, check_answers: Any
) -> None:
    files = [home / name, *((home / "shop").glob("*.py") if name == "sibling_modules.py" else ())]

    assert list_findings(check_answers(name)) == marked(iter(files))


def test_every_script_of_the_folder_is_checked() -> None:
    assert sorted(ARGUMENTS) == sorted(file.name for file in HOME.glob("*.py"))


def test_no_file_is_written(spark: SparkSession, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(home)
    before = sorted(home.parent.rglob("*"))

    for name, arguments in ARGUMENTS.items():
        check_script(spark, Path(name), arguments)

    assert sorted(home.parent.rglob("*")) == before


def clients(spark: SparkSession) -> set[str]:
    """Threads of the JVM that talk to a server or run a stream."""
    jvm: Any = spark._jvm
    threads = [str(thread.getName()).lower() for thread in jvm.java.lang.Thread.getAllStackTraces().keySet()]
    return {
        thread for thread in threads if "kafka" in thread or "jdbc" in thread or "stream execution" in thread
    }


def test_nobody_is_called(spark: SparkSession, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[Any] = []
    connect = socket.socket.connect

    def watched(connection: socket.socket, address: Any) -> None:
        if not (isinstance(address, tuple) and address[0] == "127.0.0.1"):
            called.append(address)
        connect(connection, address)

    monkeypatch.setattr(socket.socket, "connect", watched)
    # Clients of other tests may live on in this JVM.
    before = clients(spark)

    for name in ("window_counts.py", "upsert_jdbc.py", "medallion.py"):
        check_script(spark, home / name)

    assert called == []
    assert clients(spark) - before == set()


def test_a_query_is_named_by_the_variable_that_holds_it(check_answers: Any) -> None:
    assert [query.name for query in check_answers("two_queries.py").queries] == ["first", "second"]


def test_a_source_keeps_its_format_and_options(check_answers: Any) -> None:
    (query,) = check_answers("window_counts.py").queries
    (read,) = [item for item in query.walk() if not item.inputs]

    assert (read.source, read.format, read.options["subscribe"]) == ("raw", "kafka", "views")


def test_each_sink_has_its_promise(check_answers: Any) -> None:
    texts = {promise.sink: str(promise.guarantee) for promise in check_answers("medallion.py").promises}

    assert texts == {
        "delta s3a://lake/bronze": "exactly-once",
        "parquet silver.trips": "exactly-once",
        "delta s3a://lake/named": "exactly-once",
        "foreachBatch": "at-least-once",
    }


def test_spark_is_itself_again_after_a_check(spark: SparkSession, check_answers: Any) -> None:
    check_answers("two_queries.py")

    assert spark.range(3).count() == 3
    assert type(spark).getActiveSession() is not None
    assert type(spark.streams).awaitAnyTermination.__module__ == "pyspark.sql.streaming.query"
