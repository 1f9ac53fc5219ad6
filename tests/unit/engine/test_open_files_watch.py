"""A run warns when its open files run out, and ends before it would hang."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from millstream.diagnostics.failure import RESTART
from millstream.engine import open_files_watch
from millstream.engine.open_files_watch import OpenFilesWatch, watch_files
from millstream.engine.supervisor import Supervisor
from millstream.pipeline.spec_file import load_text
from millstream.spark.resources import OpenFiles
from millstream.spec.backoff import Backoff

if TYPE_CHECKING:
    from pathlib import Path

LEAK = "sockets stay open"
SPEC = """name: users
sources:
  actions: {rate: {}}
views:
  status:
    transform_with_state: "status:Status"
    from: actions
    group_by: [user]
    schema: {user: string}
    state: {last: {value: {status: string}}}
queries:
  status: {to: {console: {}}}
  copy: {from: actions, to: {console: {}}}
"""


class Run:
    """A watch over a process whose number of open files a test sets, with a limit of 1,000."""

    def __init__(self, leak: str = "", process: str = "jvm") -> None:
        self.leak, self.process, self.now = leak, process, 0.0
        self.count, self.reserve = 100, 0
        self.warnings: list[str] = []
        self.watch = OpenFilesWatch(self.read, self, clock=lambda: self.now)  # type: ignore[arg-type]

    def read(self) -> tuple[OpenFiles, ...]:
        return (OpenFiles(self.process, self.count, 1000, self.leak, self.reserve),)

    def emit(self, event: str, *_: str, **data: Any) -> None:
        if event == "warning":
            self.warnings.append(f"{data['what']} | {data['fix']}")

    def look(self, count: int) -> bool:
        """Look when so many files are open, a minute later."""
        self.count = count
        self.now += 60
        return self.watch.must_end()


def test_from_80_percent_of_the_limit_a_warning_says_what_to_do() -> None:
    run = Run()

    assert not run.look(799)
    assert run.warnings == []
    assert not run.look(800)
    assert run.warnings == [
        "Spark's JVM has 800 of at most 1,000 files and sockets open | raise the limit of open files "
        "(ulimit -n, LimitNOFILE), or restart the run, which resumes with its state"
    ]


def test_a_warning_is_given_once_until_there_were_few_open_files() -> None:
    run = Run(process="python")

    for count in (850, 790, 860, 690, 870):
        run.look(count)

    assert [warning.partition(" of at")[0] for warning in run.warnings] == [
        "Millstream's Python process has 850",
        "Millstream's Python process has 870",
    ]


def test_with_a_known_leak_the_warning_names_it_and_when_the_run_ends() -> None:
    run = Run(LEAK)

    run.look(100)
    run.look(810)

    assert len(run.warnings) == 1
    assert "sockets stay open | restart the run" in run.warnings[0]
    assert "with 950 open it ends by itself with exit code 75" in run.warnings[0]


def test_a_leak_ends_the_run_at_95_percent() -> None:
    run = Run(LEAK)
    run.look(100)

    assert not run.look(949)
    assert run.look(950)
    assert "the run ends before none is left | start it again" in run.warnings[-1]


def test_a_run_whose_batches_open_many_sockets_ends_earlier() -> None:
    run = Run(LEAK)
    run.reserve = 120
    run.look(100)

    assert not run.look(879)
    assert run.look(880)
    assert "with 880 open it ends by itself" in run.warnings[0]


def test_without_a_known_leak_the_run_goes_on() -> None:
    run = Run()
    run.look(100)

    assert not run.look(999)


def test_a_run_that_begins_with_many_open_files_does_not_end_for_them() -> None:
    run = Run(LEAK)

    assert not run.look(960)
    assert not run.look(970)


def test_looks_are_seconds_apart() -> None:
    run = Run(LEAK)
    run.look(100)
    run.count = 990

    assert not run.watch.must_end()
    run.now += 5
    assert run.watch.must_end()


def test_looks_are_more_frequent_near_the_limit() -> None:
    run = Run(LEAK)
    run.look(100)
    run.look(900)
    run.count = 990
    run.now += 1

    assert run.watch.must_end()


@pytest.mark.parametrize(
    ("version", "master", "query", "has_leak"),
    [
        pytest.param("4.2.0", "local[2]", "status", True, id="a processor"),
        pytest.param("4.2.0", "local[2]", "copy", False, id="another query of its pipeline"),
        pytest.param("4.2.1", "local[2]", "status", False, id="a Spark with the correction"),
        pytest.param("4.2.0", "spark://host:7077", "status", False, id="executors of their own"),
    ],
)
def test_a_leak_is_known_where_a_python_processor_runs_in_the_jvm_of_spark_4_2_0(
    version: str, master: str, query: str, has_leak: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    readers: list[tuple[str, str, int]] = []
    monkeypatch.setattr(open_files_watch, "open_files_reader", lambda *reader: readers.append(reader))
    pipeline = load_text("pipeline.yml", SPEC, tmp_path, {}).pipeline
    files = {"/proc/self": SimpleNamespace(getCanonicalPath=lambda: "/proc/17")}
    jvm = SimpleNamespace(**{"java.io.File": files.__getitem__})
    spark: Any = SimpleNamespace(
        version=version,
        sparkContext=SimpleNamespace(master=master),
        conf={"spark.sql.shuffle.partitions": "8"},
        _jvm=jvm,
    )
    assert pipeline is not None

    watch_files(spark, pipeline, [query])

    [(process, leak, reserve)] = readers
    assert (process, "SPARK-58932" in leak) == ("17", has_leak)
    assert reserve == (24 if query == "status" else 0)


class Query:
    """A query that runs until it is asked to end."""

    name, has_delivered, is_idle, following, delivery = "status", True, False, None, None
    is_active = True

    def __init__(self) -> None:
        self.handle = SimpleNamespace(exception=lambda: None)
        self.asked = 0

    def start(self) -> None: ...
    def look(self) -> None: ...
    def stop(self) -> None: ...
    def close(self) -> None: ...
    def settle(self) -> None: ...

    def ask_to_end(self) -> None:
        self.asked += 1

    def has_ended(self) -> bool:
        return self.asked > 1

    def has_passed_gaps(self) -> bool:
        return False

    def awaited_source(self) -> None: ...


@pytest.fixture
def supervised() -> tuple[Query, Run, Supervisor]:
    """A supervisor of one query whose process has nearly all files open after its first look."""
    query, run = Query(), Run(LEAK)
    run.look(100)
    run.count, run.now = 980, 1000.0
    return query, run, Supervisor([query], Backoff(), run, open_files=run.watch)  # type: ignore[list-item, arg-type]


def test_the_batches_in_progress_finish_and_the_exit_code_asks_for_a_restart(
    supervised: tuple[Query, Run, Supervisor],
) -> None:
    query, _, supervisor = supervised

    assert not supervisor.run()
    assert query.asked == 2
    assert supervisor.exit_code == RESTART


def test_a_run_that_is_asked_to_end_meanwhile_is_not_started_again(
    supervised: tuple[Query, Run, Supervisor],
) -> None:
    query, _, supervisor = supervised
    query.settle = supervisor.end  # type: ignore[method-assign]

    assert supervisor.run()
    assert supervisor.exit_code == 0
