"""The pytest plugin: collect test files as tests, and provide the fixture `millstream_query`.

`-p no:millstream` disables the plugin. `millstream_tests = false` in pytest's settings disables only the test files.
"""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

# Imports nothing of Millstream, because pytest loads this module in every project that has it installed.
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from millstream.pipeline.model import Pipeline
    from millstream.testing.model import Case, Outcome
    from millstream.testing.pytest_fixture import QueryUnderTest
    from millstream.testing.runner.runner import Runner

_INI = "millstream_tests"
_RUNNER = pytest.StashKey["Runner"]()
_SUFFIXES = (".yml", ".yaml")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the setting that disables test files."""
    parser.addini(
        _INI, "Collect the test files of Millstream: YAML below a folder 'tests'.", "bool", default=True
    )


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> TestFile | None:
    """Return a collector if the path is a Millstream test file."""
    if file_path.suffix not in _SUFFIXES or not parent.config.getini(_INI):
        return None
    from millstream.testing.files.discovery import is_test_file  # noqa: PLC0415 - as above

    return TestFile.from_parent(parent, path=file_path) if is_test_file(file_path) else None


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stop the Spark session of the tests."""
    runner = config.stash.get(_RUNNER, None)
    if runner is not None:
        runner.__exit__()


def runner(config: pytest.Config) -> Runner:
    """Return the runner of all tests of this pytest run, which share one Spark session."""
    if _RUNNER not in config.stash:
        from millstream.testing.runner.runner import Runner  # noqa: PLC0415 - as above

        config.stash[_RUNNER] = Runner()
    return config.stash[_RUNNER]


def read_environment(folder: Path) -> Mapping[str, str]:
    """Return the variables of a spec in a folder: those of its `.env` file, overridden by the process environment."""
    from millstream.spec.secrets.env_file import read_env  # noqa: PLC0415 - as above

    env_file = folder / ".env"
    return {**(read_env(env_file) if env_file.is_file() else {}), **os.environ}


class TestFile(pytest.File):
    """A test file."""

    __test__ = False

    def collect(self) -> Iterator[pytest.Item]:
        """Yield the tests of the file. Findings about the file are a collection error."""
        from millstream.diagnostics.render import render  # noqa: PLC0415 - as above
        from millstream.testing.files.loader import load  # noqa: PLC0415 - as above

        suite = load(self.path, read_environment)
        if suite.has_errors:
            raise self.CollectError(render(suite.findings, suite.texts))
        for case in suite.cases:
            yield TestCase.from_parent(self, name=case.name, case=case)


class ExpectationFailure(Exception):
    """A test failed; `outcome` has the details."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.case.name)
        self.outcome = outcome


class TestCase(pytest.Item):
    """One test of a test file."""

    __test__ = False

    def __init__(self, *, case: Case, **options: Any) -> None:
        super().__init__(**options)
        self.case = case

    def runtest(self) -> None:
        """Run the test."""
        outcome = runner(self.config).play(self.case)
        if not outcome.has_passed:
            raise ExpectationFailure(outcome)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Return the report that `millstream test` prints."""
        from millstream.diagnostics.failure import MillstreamError  # noqa: PLC0415 - as above
        from millstream.testing.runner.failure_report import format_report  # noqa: PLC0415 - as above

        match excinfo.value:
            case ExpectationFailure(outcome=outcome):
                return format_report(outcome)
            case MillstreamError(what=what, fix=fix):
                return f"{what}\n  fix: {fix}" if fix else what
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Return the position of the test."""
        return self.path, self.case.where.line - 1, self.name


@pytest.fixture
def millstream_query(request: pytest.FixtureRequest) -> Iterator[Callable[..., QueryUnderTest]]:
    """Open a query of a pipeline under test: `millstream_query("pipeline.yml", "funnel")`.

    The pipeline is a path relative to the test's folder, or a `Pipeline`. The query may be omitted if there is only
    one. Keywords are those of a test file: `now`, `params`, `set`, `static`, `sinks`, `tolerance`; and `watch`, the
    views, sources and real sinks whose rows are collected in addition to the query's output.
    """
    with ExitStack() as stack:
        handles: list[QueryUnderTest] = []

        def open_query(
            pipeline: Path | str | Pipeline, query: str | None = None, **options: Any
        ) -> QueryUnderTest:
            handles.append(_open_query(request, stack, pipeline, query, **options))
            return handles[-1]

        yield open_query
        for handle in handles:
            handle.close()


def _open_query(
    request: pytest.FixtureRequest,
    stack: ExitStack,
    pipeline_or_path: Path | str | Pipeline,
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
    """Open the query in its own harness, which closes with the test."""
    from millstream.diagnostics.finding import Span  # noqa: PLC0415 - as above
    from millstream.testing.files import serializer  # noqa: PLC0415 - as above
    from millstream.testing.model import Case  # noqa: PLC0415 - as above
    from millstream.testing.pytest_fixture import QueryUnderTest  # noqa: PLC0415 - as above
    from millstream.testing.values.timestamps import parse_timestamp  # noqa: PLC0415 - as above

    pipeline = _load_pipeline(request.path.parent, pipeline_or_path, params or {}, set or {})
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
        {
            table: tuple(serializer.serialize_row(row) for row in rows)
            for table, rows in (static or {}).items()
        },
        None if now is None else parse_timestamp(now),
        sinks == "real",
        tolerance,
    )
    spark = runner(request.config).spark([case])
    from millstream.testing.harness.harness import Harness  # noqa: PLC0415 - as above
    from millstream.testing.harness.session import create_case_folder  # noqa: PLC0415 - as above

    folder = stack.enter_context(create_case_folder())
    return QueryUnderTest(stack.enter_context(Harness(spark, case, folder, watch)), case)


def _load_pipeline(
    folder: Path,
    pipeline_or_path: Path | str | Pipeline,
    params: Mapping[str, Any],
    settings: Mapping[str, Any],
) -> Pipeline:
    """Load the pipeline. Findings about it fail the test."""
    from millstream.diagnostics.render import render  # noqa: PLC0415 - as above
    from millstream.pipeline.load.yaml_scalars import dump_value  # noqa: PLC0415 - as above
    from millstream.pipeline.spec_file import load_spec  # noqa: PLC0415 - as above

    if not isinstance(pipeline_or_path, str | Path):
        if params or settings:
            pytest.fail(
                "'params' and 'set' need a pipeline file; this pipeline is a `Pipeline` object", pytrace=False
            )
        return pipeline_or_path
    file = folder / pipeline_or_path
    env = read_environment(file.parent)
    declared = load_spec(file, env).pipeline if params else None
    if declared is not None and (unknown := sorted(params.keys() - declared.params.keys())):
        names = ", ".join(declared.params) or "none"
        pytest.fail(f"the pipeline has no parameter '{unknown[0]}'; it has: {names}", pytrace=False)
    overrides = {**{f"params.{name}": value for name, value in params.items()}, **settings}
    texts = [f"{key}={dump_value(value)}" for key, value in overrides.items()]
    loaded = load_spec(file, env, texts)
    if loaded.has_errors or loaded.pipeline is None:
        pytest.fail(render(loaded.findings, loaded.texts), pytrace=False)
    return loaded.pipeline
