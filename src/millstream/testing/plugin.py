"""The pytest plugin: test files are collected as tests, and `millstream_query` plays a query in Python.

`-p no:millstream` leaves all of it out, `millstream_tests = false` in pytest's settings the test files.
"""

from __future__ import annotations

import json
import os
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

# Nothing of Millstream is imported here: pytest loads this module in every project that has it installed.
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from millstream.pipeline.model import Pipeline
    from millstream.testing.case import Case, Outcome
    from millstream.testing.handle import QueryUnderTest
    from millstream.testing.run import Runner

_INI = "millstream_tests"
_RUNNER = pytest.StashKey["Runner"]()
_SUFFIXES = (".yml", ".yaml")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the setting that leaves test files out."""
    parser.addini(
        _INI, "Collect the test files of Millstream: YAML below a folder 'tests'.", "bool", default=True
    )


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> TestFile | None:
    """A test file of Millstream, or nothing."""
    if file_path.suffix not in _SUFFIXES or not parent.config.getini(_INI):
        return None
    from millstream.testing.find import is_test_file  # noqa: PLC0415 - as above

    return TestFile.from_parent(parent, path=file_path) if is_test_file(file_path) else None


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the session of the tests."""
    runner = config.stash.get(_RUNNER, None)
    if runner is not None:
        runner.__exit__()


def runner(config: pytest.Config) -> Runner:
    """What plays all tests of this run, in one session."""
    if _RUNNER not in config.stash:
        from millstream.testing.run import Runner  # noqa: PLC0415 - as above

        config.stash[_RUNNER] = Runner()
    return config.stash[_RUNNER]


def environment(folder: Path) -> Mapping[str, str]:
    """The variables that a spec in a folder sees: the process's, over those of `.env` beside it."""
    from millstream.spec.envfile import read_env  # noqa: PLC0415 - as above

    beside = folder / ".env"
    return {**(read_env(beside) if beside.is_file() else {}), **os.environ}


class TestFile(pytest.File):
    """A test file."""

    __test__ = False

    def collect(self) -> Iterator[pytest.Item]:
        """Its tests; findings about it are an error of the collection."""
        from millstream.diagnostics.render import render  # noqa: PLC0415 - as above
        from millstream.testing.load import load  # noqa: PLC0415 - as above

        suite = load(self.path, environment)
        if suite.failed:
            raise self.CollectError(render(suite.findings, suite.texts))
        for case in suite.cases:
            yield TestCase.from_parent(self, name=case.name, case=case)


class NotAsExpected(Exception):
    """A test failed; its outcome tells how."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.case.name)
        self.outcome = outcome


class TestCase(pytest.Item):
    """One test of a test file."""

    __test__ = False

    def __init__(self, *, case: Case, **more: Any) -> None:
        super().__init__(**more)
        self.case = case

    def runtest(self) -> None:
        """Play it."""
        outcome = runner(self.config).play(self.case)
        if not outcome.passed:
            raise NotAsExpected(outcome)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The report that `millstream test` prints."""
        from millstream.diagnostics.failure import MillstreamError  # noqa: PLC0415 - as above
        from millstream.testing.report import report  # noqa: PLC0415 - as above

        match excinfo.value:
            case NotAsExpected(outcome=outcome):
                return report(outcome)
            case MillstreamError(what=what, fix=fix):
                return f"{what}\n  fix: {fix}" if fix else what
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Where it stands."""
        return self.path, self.case.where.line - 1, self.name


@pytest.fixture
def millstream_query(request: pytest.FixtureRequest) -> Iterator[Callable[..., QueryUnderTest]]:
    """Open a query of a pipeline under test: `millstream_query("pipeline.yml", "funnel")`.

    The pipeline is a path from the test's folder, or a `Pipeline`; its query need not be named where it has one.
    Keywords are those of a test file: `now`, `params`, `set`, `static`, `sinks`, `tolerance`; and `watch`, the views
    and sources whose rows are looked at beside the query's own.
    """
    with ExitStack() as held:
        opened: list[QueryUnderTest] = []

        def one(pipeline: Path | str | Pipeline, query: str | None = None, **more: Any) -> QueryUnderTest:
            opened.append(_open(request, held, pipeline, query, **more))
            return opened[-1]

        yield one
        for handle in opened:
            handle.close()


def _open(
    request: pytest.FixtureRequest,
    held: ExitStack,
    given: Path | str | Pipeline,
    query: str | None,
    *,
    now: Any = None,
    params: Mapping[str, Any] | None = None,
    set: Mapping[str, Any] | None = None,
    static: Mapping[str, Iterable[Mapping[str, Any]]] | None = None,
    sinks: str = "collected",
    tolerance: float = 1e-9,
    watch: Sequence[str] = (),
) -> QueryUnderTest:
    """The query on a stage of its own, which ends with the test."""
    from millstream.diagnostics.finding import Span  # noqa: PLC0415 - as above
    from millstream.testing import said  # noqa: PLC0415 - as above
    from millstream.testing.case import Case  # noqa: PLC0415 - as above
    from millstream.testing.handle import QueryUnderTest  # noqa: PLC0415 - as above
    from millstream.testing.moments import moment  # noqa: PLC0415 - as above

    laid = {**{f"params.{name}": value for name, value in (params or {}).items()}, **(set or {})}
    pipeline = _pipeline(request.path.parent, given, laid)
    name = query or next(iter(pipeline.queries))
    if name not in pipeline.queries or (query is None and len(pipeline.queries) > 1):
        pytest.fail(f"name one of the queries {', '.join(pipeline.queries)}", pytrace=False)
    if sinks not in ("collected", "real"):
        pytest.fail(f"'sinks' takes collected or real, not '{sinks}'", pytrace=False)
    case = Case(
        request.node.name,
        pipeline,
        name,
        (),
        request.path,
        Span.point(str(request.path), (request.node.location[1] or 0) + 1),
        {table: tuple(said.row(row) for row in rows) for table, rows in (static or {}).items()},
        None if now is None else moment(now),
        sinks == "real",
        tolerance,
    )
    spark = runner(request.config).spark([case])
    from millstream.testing.session import case_folder  # noqa: PLC0415 - as above
    from millstream.testing.stage import Stage  # noqa: PLC0415 - as above

    folder = held.enter_context(case_folder())
    return QueryUnderTest(held.enter_context(Stage(spark, case, folder, watch)), case)


def _pipeline(folder: Path, given: Path | str | Pipeline, laid: Mapping[str, Any]) -> Pipeline:
    """The pipeline that is meant; findings about it fail the test."""
    from millstream.diagnostics.render import render  # noqa: PLC0415 - as above
    from millstream.pipeline.load import load  # noqa: PLC0415 - as above

    if not isinstance(given, str | Path):
        if laid:
            pytest.fail(
                "'params' and 'set' are laid over a file; this pipeline is built already", pytrace=False
            )
        return given
    file = folder / given
    loaded = load(
        file, environment(file.parent), [f"{key}={json.dumps(value)}" for key, value in laid.items()]
    )
    if loaded.failed or loaded.pipeline is None:
        pytest.fail(render(loaded.findings, loaded.texts), pytrace=False)
    return loaded.pipeline
