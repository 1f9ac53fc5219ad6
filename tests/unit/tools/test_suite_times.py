"""What the report of a recorded run says."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from suite_record import Processes, kind_of
from suite_times import report

LINES = [
    {"id": "tests/kafka/test_a.py::test_one", "when": "setup", "outcome": "passed", "s": 4.0, "cpu": 3.0, "load": 2.0,
     "at": 10.0},
    {"id": "tests/kafka/test_a.py::test_one", "when": "call", "outcome": "passed", "s": 1.0, "cpu": 0.5, "load": 2.0,
     "at": 11.0},
    {"id": "tests/unit/cli/test_b.py::test_two", "when": "call", "outcome": "failed", "s": 9.0, "cpu": 0.5,
     "load": 2.0, "at": 20.0},
    {"fixture": "stack", "scope": "session", "base": "tests", "s": 3.5, "cpu": 2.0, "at": 10.0},
    {"started": "spark jvm", "test": "tests/kafka/test_a.py::test_one", "at": 10.0},
    {"started": "spark jvm", "test": "tests/kafka/test_a.py::test_one", "at": 10.5},
]  # fmt: skip


def test_it_adds_up_by_folder_file_and_fixture_the_longest_first() -> None:
    lines = report(LINES, most=1)

    assert lines[:3] == [
        "2 tests, 14 s of workers, 4 s of CPU, 10 s by the clock, load average 2.0",
        "outcomes: 1 passed, 1 failed",
        "started: 2 spark jvm",
    ]
    assert "      9.0      0.5      1  tests/unit/cli" in lines
    assert "      5.0      3.5      1  tests/kafka" in lines
    assert "      9.0      0.5      1  tests/unit/cli/test_b.py" in lines
    assert "      5.0      3.5      1  tests/kafka/test_a.py" not in lines
    assert lines[-1] == "      3.5      2.0      1  stack (session) of tests"


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        ("/usr/bin/java @/x/millstream-a/java.args org.apache.spark.deploy.SparkSubmit", "spark jvm"),
        ("/usr/bin/java -Xmx512m -cp a.jar kafka.Kafka server.properties", "kafka broker"),
        ("/usr/bin/java -cp ivy.jar org.apache.ivy.Main", "other jvm"),
        ("/x/bin/postgres -D /x/data", "postgres server"),
        ("/venv/bin/python -m millstream run", "millstream command"),
        ("/venv/bin/python /venv/bin/millstream run", "millstream command"),
        ("/usr/bin/chromium --headless", "chromium"),
        ("/usr/bin/chromium --type=renderer", None),
        ("/bin/sh -c true", None),
    ],
)
def test_a_process_is_known_by_its_command(command: str, kind: str | None) -> None:
    assert kind_of(command.split()) == kind


def test_a_look_reads_no_process_twice_that_is_not_the_workers_own(monkeypatch: pytest.MonkeyPatch) -> None:
    processes, read = Processes((b"the mark of no process",)), Path.read_text
    before, files = set(Path("/proc").iterdir()), []
    processes.look()
    monkeypatch.setattr(Path, "read_text", lambda file: files.append(file) or read(file))

    processes.look()

    assert {file.parent for file in files} & before == {Path(f"/proc/{os.getpid()}")}
