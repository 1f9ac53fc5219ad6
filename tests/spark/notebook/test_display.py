"""A view that is run to be looked at: what is kept of it, when it ends, and what is refused."""

from __future__ import annotations

import tempfile
import threading
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PySparkException

import millstream as ms
from millstream.diagnostics.failure import InvalidInput

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from millstream.notebook.screen import DisplaySnapshot

SPEC = """name: ticking
sources:
  ticks:
    rate_micro_batch: {rows_per_batch: 10}
views:
  parity: SELECT value % 2 AS odd, count(*) AS n FROM ticks GROUP BY value % 2
  sorted: SELECT value FROM ticks ORDER BY value
  broken: SELECT timestamp, value, 1 / (value - 25) AS share FROM ticks
queries:
  parity: {output_mode: update, to: {console: {}}}
"""


class Seen:
    """A screen that keeps what it was shown, and can be waited on for a picture."""

    def __init__(self, wanted: str) -> None:
        self.sights: list[DisplaySnapshot] = []
        self.there = threading.Event()
        self._wanted = wanted

    def show(self, sight: DisplaySnapshot) -> None:
        self.sights.append(sight)
        if self._wanted in sight.state:
            self.there.set()


@pytest.fixture(autouse=True)
def _session(spark: SparkSession) -> None:
    """The tests' own session is the one that is shown in."""


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    file = tmp_path / "pipeline.yml"
    file.write_text(SPEC)
    return file


@pytest.fixture
def display_log(monkeypatch: pytest.MonkeyPatch) -> Seen:
    screen = Seen("batch 2")
    monkeypatch.setattr("millstream.notebook.display.Output", lambda: screen)
    return screen


def test_an_aggregation_is_shown_whole_until_it_is_stopped(spec: Path, display_log: Seen) -> None:
    with ms.display(str(spec), every="10 milliseconds", wait=False) as display:
        assert display_log.there.wait(60)
        rows = display.rows

    assert sorted(rows["odd"]) == [0, 1]
    assert rows["n"].sum() >= 20
    assert rows["n"].sum() % 10 == 0
    assert not display.running
    assert display.error is None
    assert display_log.sights[-1].state == f"stopped after {display.batches} batches"
    assert "<svg" not in display_log.sights[0].html()


def test_the_newest_rows_are_kept_and_no_more_than_asked_for(spec: Path, display_log: Seen) -> None:
    with ms.display(spec.parent, "ticks", rows=7, every="10 milliseconds", wait=False) as display:
        assert display_log.there.wait(60)

    values = list(display.rows["value"])
    assert len(values) == 7
    # All of the last batch, which has ten.
    assert min(values) >= (display.batches - 1) * 10


def test_a_view_may_be_on_display_twice(spec: Path, display_log: Seen) -> None:
    with (
        ms.display(spec, "ticks", every="10 milliseconds", wait=False) as first,
        ms.display(spec, "ticks", every="10 milliseconds", wait=False) as second,
    ):
        assert display_log.there.wait(60)
        assert (first.running, second.running) == (True, True)

    assert (first.error, second.error) == (None, None)


def test_a_display_that_cannot_start_leaves_no_folder(
    spec: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    with pytest.raises(PySparkException):
        ms.display(spec, "ticks", every="never")

    assert list(tmp_path.glob("millstream-display-*")) == []


def test_it_ends_by_itself_when_its_time_is_over(spec: Path, display_log: Seen) -> None:
    display = ms.display(spec, "ticks", seconds=0.2)

    assert not display.running
    assert display_log.sights[-1].state.startswith("stopped after")


def test_a_view_that_fails_says_why_and_ends(spec: Path, display_log: Seen) -> None:
    display = ms.display(spec, "broken", every="10 milliseconds", seconds=60)

    assert "Division by zero" in str(display.error)
    assert display_log.sights[-1].state == f"ended: {display.error}"
    assert display.batches == 2


def test_a_pipeline_of_the_python_api_is_shown(display_log: Seen, tmp_path: Path) -> None:
    result = ms.declare("made", folder=tmp_path)
    result.source("ticks", ms.rate_micro_batch(rows_per_batch=10), watermark=("timestamp", "1 second"))
    result.view("spans", "SELECT window(timestamp, '1 second') AS since, count(*) AS n FROM ticks GROUP BY 1")
    result.query("spans", output_mode="append", to=ms.console())

    with ms.display(result, "spans", every="10 milliseconds", wait=False) as display:
        assert display_log.there.wait(60)

    assert display.rows["since"].is_monotonic_decreasing
    assert "<svg" in display_log.sights[-1].html()


def test_a_table_is_shown_once(spark: SparkSession, display_log: Seen) -> None:
    display = ms.display(spark.sql("SELECT 'a' AS name, 3 AS n"))

    assert [sight.state for sight in display_log.sights] == ["a static table"]
    assert display.rows.to_dict("records") == [{"name": "a", "n": 3}]
    assert not display.running


def test_what_spark_runs_in_no_mode_is_refused_with_a_cure(spec: Path) -> None:
    with pytest.raises(InvalidInput, match="sorted cannot be shown: Sorting is not supported") as error:
        ms.display(spec, "sorted")
    assert "remove the sort" in error.value.fix

    with pytest.raises(InvalidInput, match="parity cannot be shown in output mode append"):
        ms.display(spec, output_mode="append")


@pytest.mark.parametrize(("named", "words"), [({"view": "nix"}, "no view"), ({"y": "nix"}, "no column")])
def test_unknown_names_are_answered_with_those_there_are(
    spec: Path, named: dict[str, str], words: str
) -> None:
    with pytest.raises(InvalidInput, match=words) as error:
        ms.display(spec, **named)

    assert "odd" in error.value.fix or "parity" in error.value.fix


def test_a_spec_with_errors_is_refused_with_them(tmp_path: Path) -> None:
    (tmp_path / "pipeline.yml").write_text("name: x\nsorces: {}\n")

    with pytest.raises(InvalidInput, match="sorces"):
        ms.display(tmp_path)
