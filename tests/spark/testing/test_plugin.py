"""The fixture for tests in Python, and what pytest shows of a test file that fails."""

from __future__ import annotations

import contextlib
import io
from typing import TYPE_CHECKING, Any

import pytest

from commands import shared_spark
from millstream.diagnostics.failure import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from millstream.testing.pytest_fixture import QueryUnderTest

SPEC = """\
name: shop
params: {least: 0}
sources:
  clicks:
    kafka: {bootstrap_servers: h, subscribe: clicks}
    schema: {id: string, at: timestamp, n: int}
    watermark: {event_time: at, delay_threshold: 5 minutes}
    on_malformed: dead_letter
  names:
    parquet: names
    schema: {id: string, name: string}
    static: true
views:
  big: SELECT * FROM clicks WHERE n >= :least
  counts: |
    SELECT window.start AS since, count(*) AS n FROM big JOIN names USING (id) GROUP BY window(at, '10 minutes')
queries:
  counts: {output_mode: update, to: [{delta: {path: lake/counts, merge_on: [since]}}]}
"""
NOON = "2026-01-01 12:00:00"
PLUGIN = "millstream.testing.pytest_plugin"


@pytest.fixture
def counts(millstream_query: Callable[..., QueryUnderTest], tmp_path: Path, spark: Any) -> QueryUnderTest:  # noqa: ARG001 - the suite's own session
    (tmp_path / "pipeline.yml").write_text(SPEC)
    return millstream_query(
        tmp_path / "pipeline.yml",
        params={"least": 1},
        static={"names": [{"id": "a", "name": "A"}]},
        watch=["big"],
    )


def test_a_query_is_played_a_batch_at_a_time(counts: QueryUnderTest) -> None:
    counts.feed(clicks=[{"id": "a", "at": "2026-01-01 12:01:00", "n": 1}, {"id": "a", "at": NOON, "n": 0}])
    counts.expect([{"since": NOON, "n": 1}], big=[{"n": 1}], watermark="2026-01-01 11:56:00")

    # The newest batch is the one without data that followed the moved watermark.
    counts.crash("after_sink")
    counts.expect([])

    counts.restart()
    counts.feed(clicks=[{"id": "a", "at": "2026-01-01 12:31:00", "n": 2}])
    counts.expect([{"since": "2026-01-01 12:30:00"}], dropped=0)

    counts.feed({"clicks": [{"record": {"value": "{broken"}}, {"id": "a", "at": NOON, "n": 1}]})
    counts.expect([], dropped=1, dead_letters=[{"source": "clicks", "value": "{broken"}])


def test_what_differs_is_told_as_for_a_test_file(counts: QueryUnderTest) -> None:
    counts.feed(clicks=[{"id": "a", "at": NOON, "n": 1}])

    with pytest.raises(AssertionError) as failed:
        counts.expect([{"since": NOON, "n": 2}])

    assert "=>      1  0" in str(failed.value)
    assert "2026-01-01 12:00:00  *2   2026-01-01 12:00:00  *1" in str(failed.value)


def test_what_came_can_be_taken_as_it_is(counts: QueryUnderTest) -> None:
    counts.feed(clicks=[{"id": "a", "at": NOON, "n": 1}])

    step_result = counts.take()

    assert [row["n"] for row in step_result.rows[""]] == [1]


def test_the_rows_of_the_querys_view_and_sinks_are_those_since_the_last_look(counts: QueryUnderTest) -> None:
    counts.feed(clicks=[{"id": "a", "at": NOON, "n": 1}])
    counts.expect([{"n": 1}])
    counts.feed(clicks=[{"id": "a", "at": "2026-01-01 12:01:00", "n": 1}])

    counts.expect([{"n": 2}], counts=[{"n": 2}], delta=[{"n": 2}])

    counts.feed(clicks=[{"id": "a", "at": "2026-01-01 12:02:00", "n": 1}])
    with pytest.raises(AssertionError, match="rows of sink 'delta'"):
        counts.expect([{"n": 3}], delta=[])


@pytest.mark.parametrize("name", ["names", "bgi"])
def test_rows_of_a_name_that_is_not_watched_cannot_be_expected(counts: QueryUnderTest, name: str) -> None:
    counts.feed(clicks=[{"id": "a", "at": NOON, "n": 1}])

    with pytest.raises(InvalidInput, match=f"the rows of '{name}' are not collected"):
        counts.expect(**{name: []})


def test_a_parameter_that_the_pipeline_does_not_have_fails_the_test(
    millstream_query: Callable[..., QueryUnderTest], tmp_path: Path
) -> None:
    (tmp_path / "pipeline.yml").write_text(SPEC)

    with pytest.raises(pytest.fail.Exception, match="has no parameter 'lest'; it has: least"):
        millstream_query(tmp_path / "pipeline.yml", params={"lest": 1})


def test_a_test_file_that_fails_shows_its_report(
    tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "ticks.yml").write_text(
        "pipeline: {name: a, sources: {ticks: {rate: {}}}, queries: {ticks: {to: {console: {}}}}}\n"
        "tests:\n"
        "  it passes: {steps: [{feed: {ticks: [{value: 1}]}, expect: [{value: 1}]}]}\n"
        "  it fails: {steps: [{feed: {ticks: [{value: 1}]}, expect: [{value: 2}]}]}\n"
    )

    # A pytest inside this one, without the plugins that change the process; a process would start Spark for itself.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.chdir(tmp_path)
    printed = io.StringIO()
    with shared_spark(spark), contextlib.redirect_stdout(printed):
        code = pytest.main(["-q", "-p", "no:faulthandler", "-p", "no:cacheprovider", "-p", PLUGIN])

    assert code == pytest.ExitCode.TESTS_FAILED
    assert "1 failed, 1 passed" in printed.getvalue()
    assert "*2       *1" in printed.getvalue()
    assert "Traceback" not in printed.getvalue()
