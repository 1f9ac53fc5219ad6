"""Run the tests of mutants: of many in one process, or of each in a process with its own copy of the sources."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mutant_code import ROOT, Mutant, mutate

if TYPE_CHECKING:
    from collections.abc import Sequence

MAP_OUT = "MILLSTREAM_MUTANT_MAP"
"""Variable of `mutant_map`: the file of the map."""
JOBS = "MILLSTREAM_MUTANT_JOBS"
"""Variable of `mutant_worker`: the file with what it is to try."""
PATIENCE = 600
"""Seconds without a result after which a process is killed; a mutant that never ends is noticed."""
_PYTEST = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "timeout=100", "--tb=line"]


def map_lines(out: Path, words: Sequence[str]) -> int:
    """Run tests and note the lines that each reaches; the exit code of pytest."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "mutant_map", *words]
    return subprocess.run(command, cwd=ROOT, env=_environment({MAP_OUT: str(out)}), check=False).returncode


def read_maps(files: Sequence[Path]) -> dict[str, Any]:
    """The maps of several runs as one."""
    seconds: dict[str, float] = {}
    lines: dict[str, dict[str, list[int]]] = {}
    for file in files:
        reached = json.loads(file.read_text(encoding="utf-8"))
        first = len(seconds)
        seconds.update(reached["seconds"])
        for path, tests_of in reached["lines"].items():
            for line, numbers in tests_of.items():
                lines.setdefault(path, {}).setdefault(line, []).extend(first + number for number in numbers)
    return {"seconds": seconds, "lines": lines}


def _environment(more: dict[str, str], source: Path | None = None) -> dict[str, str]:
    paths = [str(source or ROOT / "src"), str(ROOT / "tools")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONDONTWRITEBYTECODE": "1", **more}


@dataclass
class StageRun:
    """The mutants of one map, tried; each result is a line of the file of results."""

    stage: str
    reached: dict[str, Any]
    """`seconds` by test, and by file and line the numbers of the tests that reach it."""
    results: Path
    seconds: float
    """What the tests of one mutant may take in all."""
    is_whole: bool
    """All parameters of a test that reaches the line are tried."""
    words: list[str]
    """What pytest is given instead of the tests that reach the line; empty for these."""

    def __post_init__(self) -> None:
        """Name the tests by their number."""
        self.results.touch()
        self._names = list(self.reached["seconds"])
        self._broken: set[str] = set()

    def tests_of(self, mutant: Mutant) -> list[str]:
        """The tests that reach the line, the statement, or for a line outside functions the file; fast ones first."""
        if self.words:
            return self.words
        lines = self.reached["lines"].get(mutant.file, {})
        numbers = lines.get(str(mutant.line)) or lines.get(str(mutant.statement)) or []
        if not numbers and mutant.function is None:
            numbers = {number for line in lines.values() for number in line}
        took = self.reached["seconds"]
        tests = sorted((self._names[number] for number in numbers), key=lambda test: (took[test], test))
        total = 0.0
        chosen: list[str] = []
        for test in tests:
            if (total := total + took[test]) > self.seconds and chosen:
                break
            chosen.append(test)
        return list(dict.fromkeys(test.partition("[")[0] for test in chosen)) if self.is_whole else chosen

    def try_all(self, mutants: list[Mutant], jobs: int, is_fresh: bool) -> None:
        """Try the mutants, in so many processes side by side."""
        with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(jobs) as pool:
            shards = [mutants[number::jobs] for number in range(jobs)]
            folders = [Path(folder) / str(number) for number in range(jobs)]
            list(pool.map(self._try_shard, shards, folders, [is_fresh] * jobs))

    def _try_shard(self, mutants: list[Mutant], folder: Path, is_fresh: bool) -> None:
        folder.mkdir()
        tried = [mutant for mutant in mutants if self.tests_of(mutant)]
        for mutant in set(mutants) - set(tried):
            self._note(mutant, "unnoticed", "", 0, 0.0)
        if not is_fresh:
            self._try_together([mutant for mutant in tried if mutant.function], folder / "jobs.json")
        outcomes = self._outcomes()
        shutil.copytree(ROOT / "src", folder / "src")
        for mutant in tried:
            if outcomes.get(mutant.id, "alone") == "alone":
                self._try_alone(mutant, folder / "src")

    def _try_together(self, todo: list[Mutant], file: Path) -> None:
        """Try mutants in one process, which begins again with the next when a mutant has left it broken."""
        while todo:
            jobs = [
                {**asdict(mutant), "head": self._head(mutant), "tests": self.tests_of(mutant)}
                for mutant in todo
            ]
            file.write_text(json.dumps({"jobs": jobs, "out": str(self.results)}), encoding="utf-8")
            tests = sorted({test.partition("::")[0] for mutant in todo for test in self.tests_of(mutant)})
            with self.results.with_suffix(".log").open("ab") as log:
                process = subprocess.Popen(
                    [*_PYTEST, "-p", "mutant_worker", *tests],
                    cwd=ROOT, env=self._variables({JOBS: str(file)}), stdout=log, stderr=log, start_new_session=True,
                )  # fmt: skip
                while process.poll() is None and time.time() - self.results.stat().st_mtime < PATIENCE:
                    time.sleep(0.5)
            is_hung = process.poll() is None
            _kill(process)
            outcomes = self._outcomes()
            todo = [mutant for mutant in todo if mutant.id not in outcomes]
            if todo:
                self._note(todo[0], "noticed" if is_hung else "alone", "hung" if is_hung else "", 1, 0.0)
                del todo[0]

    def _outcomes(self) -> dict[str, str]:
        results = map(json.loads, self.results.read_text(encoding="utf-8").splitlines())
        return {result["id"]: result["outcome"] for result in results if result["stage"] == self.stage}

    def _try_alone(self, mutant: Mutant, source: Path) -> None:
        """Try a mutant in a copy of the sources; a failure counts where the test passes without the mutant."""
        file, began = source.parent / mutant.file, time.monotonic()
        text, tests, outcome, by = file.read_text(encoding="utf-8"), self.tests_of(mutant), "unnoticed", ""
        while remaining := [test for test in tests if test not in self._broken]:
            file.write_text(mutate(text, mutant.node), encoding="utf-8")
            failed = self._first_failure(remaining, source)
            file.write_text(text, encoding="utf-8")
            if failed is None:
                break
            if self._first_failure([failed] if failed else remaining, source) is None:
                outcome, by = "noticed", failed or "the tests did not start, or hung"
                break
            if not failed:
                by = "the tests do not run without the mutant either"
                break
            self._broken.add(failed)
        self._note(mutant, outcome, by, len(remaining), time.monotonic() - began)

    def _first_failure(self, tests: list[str], source: Path) -> str | None:
        """The test that failed first; empty for a run that did not come so far; None if all passed."""
        process = subprocess.Popen(
            [*_PYTEST, "-x", *tests],
            cwd=ROOT, env=self._variables({}, source), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            start_new_session=True, text=True,
        )  # fmt: skip
        try:
            output, _ = process.communicate(timeout=PATIENCE + self.seconds)
        except subprocess.TimeoutExpired:
            return ""
        finally:
            _kill(process)
        if process.returncode in (0, 5):
            return None
        names = re.findall(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", output, re.MULTILINE)
        return names[0] if names and "::" in names[0] else ""

    def _variables(self, more: dict[str, str], source: Path | None = None) -> dict[str, str]:
        return _environment({**more, **({"MILLSTREAM_SWEEP": "all"} if self.is_whole else {})}, source)

    def _head(self, mutant: Mutant) -> dict[str, str]:
        return {"id": mutant.id, "part": mutant.part, "stage": self.stage}

    def _note(self, mutant: Mutant, outcome: str, by: str, tests: int, seconds: float) -> None:
        append_result(
            self.results,
            {**self._head(mutant), "outcome": outcome, "by": by, "tests": tests, "seconds": seconds},
        )


def append_result(file: Path, result: dict[str, Any]) -> None:
    """Add a line to the results."""
    with file.open("a", encoding="utf-8") as lines:
        lines.write(json.dumps(result | {"seconds": round(result["seconds"], 1)}) + "\n")


def _kill(process: subprocess.Popen[Any]) -> None:
    """End a process and whatever it has started and left."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
