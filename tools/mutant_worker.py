"""A pytest plugin that runs the tests of many mutants in one process; `mutants.py run` loads it."""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib
import json
import os
import time
from pathlib import Path
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

import pytest

from mutant_code import ROOT, mutated_tree
from mutant_run import JOBS, append_result

if TYPE_CHECKING:
    from collections.abc import Iterator


class Worker:
    """The mutants to try, and whether the test that is running has failed."""

    def __init__(self, jobs: list[dict[str, Any]], out: Path) -> None:
        self.jobs = jobs
        self.out = out
        self.has_failed = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a failure."""
        self.has_failed |= report.failed

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Try each mutant; end early when a test fails without the mutant too, as the process is no longer sound."""
        items: dict[str, list[pytest.Item]] = {}
        for item in session.items:
            for name in {item.nodeid, item.nodeid.partition("[")[0]}:
                items.setdefault(name, []).append(item)
        for job in self.jobs:
            began = time.monotonic()
            tests = [item for test in job["tests"] for item in items.get(test, ())]
            with replaced_code(job) as is_replaced:
                failed = self._first_failure(session, tests) if is_replaced else None
            if failed and self._first_failure(session, [failed]):
                break
            outcome = "alone" if not is_replaced else "noticed" if failed else "unnoticed"
            by, seconds = failed.nodeid if failed else "", time.monotonic() - began
            result = {"outcome": outcome, "by": by, "tests": len(tests), "seconds": seconds}
            append_result(self.out, job["head"] | result)
        return True

    def _first_failure(self, session: pytest.Session, items: list[pytest.Item]) -> pytest.Item | None:
        failed = None
        for item, following in zip(items, [*items[1:], session], strict=True):
            self.has_failed = False
            if isinstance(item, pytest.Function):
                item._initrequest()  # noqa: SLF001 what pytest-rerunfailures calls too
            item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
            if self.has_failed:
                failed = item
                break
        # What outlives the session's tests alone stays.
        with contextlib.suppress(Exception):
            session._setupstate.teardown_exact(session)  # type: ignore[arg-type]  # noqa: SLF001
        return failed


@contextlib.contextmanager
def replaced_code(job: dict[str, Any]) -> Iterator[bool]:
    """The functions of the module run the code of the mutant; False where there is none to replace."""
    name, first = job["function"]
    file = ROOT / job["file"]
    module = job["file"].removeprefix("src/").removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    importlib.import_module(module)
    code = _find_code(
        compile(mutated_tree(file.read_text(encoding="utf-8"), job["node"]), str(file), "exec"), name, first
    )
    functions = [
        item
        for item in gc.get_objects()
        if isinstance(item, FunctionType)
        and (item.__code__.co_filename, item.__code__.co_qualname, item.__code__.co_firstlineno)
        == (str(file), name, first)
    ]
    if (
        code is None
        or not functions
        or any(item.__code__.co_freevars != code.co_freevars for item in functions)
    ):
        yield False
        return
    before = [item.__code__ for item in functions]
    _forget()
    try:
        for item in functions:
            item.__code__ = code
        yield True
    finally:
        for item, original in zip(functions, before, strict=True):
            item.__code__ = original
        _forget()


def _find_code(code: CodeType, name: str, first: int) -> CodeType | None:
    if (code.co_qualname, code.co_firstlineno) == (name, first):
        return code
    inner = (_find_code(item, name, first) for item in code.co_consts if isinstance(item, CodeType))
    return next((item for item in inner if item), None)


def _forget() -> None:
    """Clear what functions of the package have kept."""
    cached = type(functools.cache(len))
    for item in gc.get_objects():
        if isinstance(item, cached) and item.__module__.startswith("millstream"):
            item.cache_clear()


def pytest_configure(config: pytest.Config) -> None:
    """Try what a file asks for."""
    if JOBS in os.environ:
        given = json.loads(Path(os.environ[JOBS]).read_text(encoding="utf-8"))
        config.pluginmanager.register(Worker(given["jobs"], Path(given["out"])), "mutant-worker")
