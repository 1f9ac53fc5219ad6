"""A copy of the e-commerce example with topics, lake and database of its own, used as a person uses it."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import yaml

from acceptance import tables
from acceptance.oracle import STREAMS, Tables, expected
from commands import call, shared_spark

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

COMMAND = str(Path(sys.executable).with_name("millstream"))
START = "2026-01-01T00:00:00Z"
_LOOK = 0.05


def until(condition: Callable[[], Any], seconds: float, what: str) -> Any:
    """What `condition` gives as soon as it gives something; fails when it does not in that time."""
    deadline = time.monotonic() + seconds
    looking = threading.Event()
    while not (actual := condition()):
        assert time.monotonic() < deadline, f"after {seconds:g} s: {what}"
        looking.wait(_LOOK)
    return actual


@dataclass
class Events:
    """What `--json` has told."""

    text: str

    @property
    def events(self) -> list[dict[str, Any]]:
        """Whole lines only."""
        return [json.loads(line) for line in self.text.split("\n")[:-1]]

    def list_events(self, event: str, **data: Any) -> list[dict[str, Any]]:
        """The events of that name with these values."""
        item = {"event": event, **data}
        return [entry for entry in self.events if item.items() <= entry.items()]


class Running(Events):
    """A command that was started in a process group of its own. Its output goes to files."""

    def __init__(self, process: subprocess.Popen[bytes], out: Path, err: Path) -> None:
        self.process, self.out, self.err = process, out, err

    @property
    def text(self) -> str:  # type: ignore[override]
        """What it has told up to here."""
        return self.out.read_text(encoding="utf-8")

    def await_event(
        self, event: str, count: int = 1, seconds: float = 300.0, **data: Any
    ) -> list[dict[str, Any]]:
        """Wait until an event of that name has come `count` times."""

        def has_event() -> list[dict[str, Any]]:
            events = self.list_events(event, **data)
            if len(events) < count:
                assert self.process.poll() is None, f"it ended with {self.process.poll()}:\n{self.words()}"
            return events if len(events) >= count else []

        return until(has_event, seconds, f"{event} has not come {count} times\n{self.words()}")  # type: ignore[no-any-return]

    def stays(self, seconds: float) -> None:
        """Let it run for that long; fails when it ends meanwhile."""
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return
        raise AssertionError(f"it ended with {code}:\n{self.words()}")

    def ends(self, seconds: float = 300.0) -> int:
        """Wait for its end, and give its exit code."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"it did not end within {seconds:g} s:\n{self.words()}") from None

    def signal(self, number: int) -> None:
        """To this process alone, as a service manager sends it."""
        self.process.send_signal(number)

    def kill(self) -> None:
        """`kill -9` of the whole group: Python, the JVM and its workers."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def words(self) -> str:
        """What it has said to a person."""
        return self.err.read_text(encoding="utf-8", errors="replace")


@dataclass
class Done:
    """A command that has ended."""

    code: int
    out: str
    err: str


@dataclass
class Project:
    """The copy in `folder`; its topics begin with `prefix`."""

    folder: Path
    kafka: str
    postgres: str
    prefix: str
    is_remote: bool = False
    """Whether its checkpoints are on HDFS or S3. Commands read them with Spark, whose jars no process changes."""
    journals: list[Path] = field(default_factory=list)
    started: list[Running] = field(default_factory=list)
    _numbers: Any = field(default_factory=itertools.count)

    @property
    def lake(self) -> Path:
        return self.folder / "lake"

    @property
    def state(self) -> Path:
        return self.folder / "state"

    def env(self, **more: str | None) -> dict[str, str]:
        """The variables of a command; None takes one away."""
        actual = {
            "KAFKA": self.kafka,
            "LAKE": str(self.lake),
            "STATE_DIR": str(self.state),
            "POSTGRES_URL": self.postgres,
            "NO_COLOR": "1",
        }
        return {key: value for key, value in {**os.environ, **actual, **more}.items() if value is not None}

    def start(self, *words: str, **env: str | None) -> Running:
        """Start `millstream …` and return at once."""
        number = next(self._numbers)
        out, err = self.folder / f"{number}.out", self.folder / f"{number}.err"
        with out.open("wb") as stdout, err.open("wb") as stderr:
            process = subprocess.Popen(
                [COMMAND, *words], cwd=self.folder, env=self.env(**env), stdout=stdout, stderr=stderr,
                stdin=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
        self.started.append(Running(process, out, err))
        return self.started[-1]

    def call(self, *words: str, seconds: float = 300.0, **env: str | None) -> Done:
        """Run `millstream …` to its end."""
        running = self.start(*words, **env)
        code = running.ends(seconds)
        return Done(code, running.out.read_text(encoding="utf-8"), running.words())

    def catch_up(self, seconds: float = 300.0) -> Running:
        """`run --until-caught-up`, which must go well."""
        running = self.start("run", "--until-caught-up", "--json")
        code = running.ends(seconds)
        assert code == 0, running.words()
        return running

    def catch_up_in(self, spark: SparkSession, *words: str) -> Events:
        """The same in this process and in the session of the tests, for what is not about processes."""
        with shared_spark(spark):
            done = call(self.folder, "run", "--until-caught-up", "--json", *words, env=self.env())
        assert done.returncode == 0, done.stderr
        return Events(done.stdout)

    def call_here(self, *words: str, **env: str | None) -> Done:
        """Run `millstream …` in this process, where it starts no Spark."""
        done = call(self.folder, *words, env=self.env(**env))
        return Done(done.returncode, done.stdout, done.stderr)

    def send(self, rows: int, *, seed: int = 1, start: str = START) -> None:
        """Produce so many records at once, and keep the journal."""
        options = ("--rows", str(rows), "--seed", str(seed), "--start", start)
        done = self.call_here("traffic", "--json", "--journal", self._new_journal(), *options)
        assert done.code == 0, done.err

    def traffic(self, *words: str) -> Running:
        """Start the traffic generator with a journal of its own."""
        return self.start("traffic", "--json", "--journal", self._new_journal(), *words)

    def _new_journal(self) -> str:
        self.journals.append(self.folder / f"journal-{len(self.journals)}.jsonl")
        return str(self.journals[-1])

    def expected_tables(self) -> Tables:
        """What the tables must hold."""
        catalog = self.folder / "data" / "product_catalog"
        return expected(self.journals, self.kafka, catalog, self.prefix)

    def stored_tables(self) -> Tables:
        """What the tables hold. Both tables of purchases must hold the same."""
        lake, base = tables.parquet(self.lake / "purchases"), tables.postgres(self.postgres)
        assert lake == base, f"Parquet has {len(lake)} purchases, Postgres {len(base)}, and they differ"
        call = self.call if self.is_remote else self.call_here
        result = call("deadletter", "list", "--json")
        assert result.code == 0, result.err
        records = json.loads(result.out)["records"]
        places = [(record["topic"], record["partition"], record["offset"]) for record in records]
        assert len(set(places)) == len(places), "a dead letter is told twice"
        return Tables(tables.funnel(self.lake / "funnel"), base, frozenset(places))

    def checkpoints(self) -> list[Path]:
        """The checkpoint of each query."""
        return sorted(path.parent for path in self.state.rglob("offsets"))

    def files(self) -> dict[str, bytes]:
        """Every data file in the lake, by its path; what a reader passes over is left out."""
        return {
            str(path.relative_to(self.lake)): path.read_bytes()
            for path in sorted(self.lake.rglob("*.parquet"))
            if path.is_file()
        }

    def close(self) -> None:
        """End what a test left running."""
        for process in self.started:
            if process.process.poll() is None:
                process.kill()


def last(folder: Path) -> int:
    """The highest batch number in a folder of Spark's log; -1 when it is empty."""
    return max((int(path.name) for path in folder.iterdir() if path.name.isdigit()), default=-1)


def adapt(folder: Path, prefix: str) -> None:
    """Give a copy of the example topics of its own, and take late records out of its traffic.

    What happens to a late record depends on the batches; all else has one right answer.
    """
    spec = (folder / "pipeline.yml").read_text(encoding="utf-8")
    for name in STREAMS:
        assert f"subscribe: {name}\n" in spec
        spec = spec.replace(f"subscribe: {name}\n", f"subscribe: {prefix}{name}\n")
    (folder / "pipeline.yml").write_text(spec, encoding="utf-8")
    traffic = yaml.safe_load((folder / "traffic.yml").read_text(encoding="utf-8"))
    for name in STREAMS:
        traffic["streams"][name]["topic"] = f"{prefix}{name}"
        traffic["streams"][name].pop("late", None)
    (folder / "traffic.yml").write_text(yaml.safe_dump(traffic, sort_keys=False), encoding="utf-8")


def database(url: str, name: str) -> str:
    """The address of another database of the same server."""
    return urlsplit(url)._replace(path=f"/{name}").geturl()
