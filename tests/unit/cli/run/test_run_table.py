"""The terminal of a run, as a person sees it: the bytes are drawn on a screen of a fixed width."""

from __future__ import annotations

import sys
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import click
import pyte
import pytest
from rich.console import Console
from rich.text import Text

from millstream.cli.run import run_table
from millstream.cli.run.run_columns import QueryFigures, build_table, format_number, format_span
from millstream.cli.run.run_table import LiveTable
from millstream.engine.events.event_bus import Event
from millstream.pipeline.load.loader import load_text

if TYPE_CHECKING:
    from millstream.pipeline.model import Pipeline

SPEC = """
name: shop
defaults: {trigger: 5 seconds}
sources: {ticks: {rate: {rows_per_second: 1}}}
views: {all: SELECT * FROM ticks}
queries:
  funnel: {from: all, to: [console: {}]}
  purchases_by_country_and_hour: {from: all, to: [console: {}]}
"""
FUNNEL, LONG = "funnel", "purchases_by_country_and_hour"
BATCH: dict[str, Any] = {
    "batch": 1204,
    "rows_in": 20_480,
    "rows_out": 512,
    "late_rows": 0,
    "processed_rate": 20_480.4,
    "duration_ms": {"triggerExecution": 23_500},
    "watermark": None,
    "state_rows": 1_204_000,
    "sources": [
        {"endOffset": {"clicks": {"0": 10, "1": 4}}, "latestOffset": {"clicks": {"0": 12, "1": 9}}},
    ],
}
GUARANTEE = {
    "query": FUNNEL,
    "sink": "delta lake/funnel",
    "guarantee": "at-most-once",
    "weakest": {"text": "source 'ticks' (rate) cannot give a lost batch again " * 2, "file": None},
}


@pytest.fixture(autouse=True)
def _time_stands_still(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long a loaded machine takes, no second passes."""
    monkeypatch.setattr(run_table, "time", SimpleNamespace(monotonic=lambda: 100.0))


@pytest.fixture
def pipeline() -> Pipeline:
    pipeline = load_text("pipeline.yml", SPEC, Path(), {}).pipeline
    assert pipeline is not None
    return pipeline


class Terminal(StringIO):
    """A terminal of a width, and what stands on its screen."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.screen = pyte.Screen(width, 40)
        self._stream = pyte.Stream(self.screen)
        self.console = Console(file=self, force_terminal=True, width=width, height=40, color_system=None)

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self._stream.feed(text.replace("\n", "\r\n"))
        return len(text)

    @property
    def lines(self) -> list[str]:
        return [line.rstrip() for line in self.screen.display if line.strip()]


def started(pipeline: Pipeline, terminal: Terminal) -> LiveTable:
    table = LiveTable(pipeline, list(pipeline.queries), Path("run.log"), terminal.console)
    table._live.auto_refresh = False
    return table


@pytest.mark.parametrize("width", [80, 100, 120, 160])
def test_no_header_and_no_figure_is_cut(width: int) -> None:
    queries = {name: QueryFigures(5.0) for name in (FUNNEL, LONG)}
    for figures in queries.values():
        figures.update(Event("batch_committed", FUNNEL, {**BATCH, "late_rows": 12}))
        figures.update(Event("dead_letter", FUNNEL, {"records": 170}))
    terminal = Terminal(width)

    terminal.console.print(build_table(queries, width))

    assert len(terminal.lines) == 3
    assert "…" not in "\n".join(terminal.lines)


@pytest.mark.parametrize(
    ("width", "head"),
    [
        (60, "query state batch time"),
        (80, "query state in/s batch time lag"),
        (100, "query state in/s batch time lag watermark lag problems"),
        (120, "query state batch in/s out/s batch time lag watermark lag problems"),
        (140, "query state batch in/s out/s batch time lag watermark lag state rows problems"),
    ],
)
def test_a_wider_terminal_has_more_columns(width: int, head: str) -> None:
    figures = QueryFigures(5.0)
    figures.update(Event("batch_committed", LONG, {**BATCH, "late_rows": 12}))
    terminal = Terminal(width)

    terminal.console.print(build_table({LONG: figures}, width))

    assert terminal.lines[0].split() == head.split()


def test_a_terminal_too_narrow_for_anything_cuts_the_name_alone() -> None:
    terminal = Terminal(26)

    terminal.console.print(build_table({LONG: QueryFigures(5.0)}, 26))

    assert terminal.lines[1] == "purchases_by…  starting"


def test_the_records_that_wait_are_summed_over_the_partitions() -> None:
    figures = QueryFigures(5.0)
    figures.update(Event("batch_committed", LONG, BATCH))
    terminal = Terminal(80)

    terminal.console.print(build_table({LONG: figures}, 80))

    assert terminal.lines[1].split() == [LONG, "running", "20.5k", "23.5", "s", "/", "5", "s", "7"]


@pytest.mark.parametrize(
    ("milliseconds", "style"), [(5_001, "bold red"), (5_000, "yellow"), (4_000, ""), (100, "")]
)
def test_a_batch_longer_than_its_trigger_is_red(milliseconds: int, style: str) -> None:
    figures = QueryFigures(5.0)
    figures.update(
        Event("batch_committed", FUNNEL, {**BATCH, "duration_ms": {"triggerExecution": milliseconds}})
    )

    table = build_table({FUNNEL: figures}, 80)

    cell = next(column for column in table.columns if column.header == "batch time")._cells[0]
    assert getattr(cell, "style", None) == style


def test_what_has_no_problem_has_no_column_of_problems() -> None:
    figures = QueryFigures(None)
    figures.update(Event("batch_committed", FUNNEL, BATCH))

    assert "problems" not in [column.header for column in build_table({FUNNEL: figures}, 200).columns]


@pytest.mark.parametrize("event", ["idle", "waiting", "retry", "query_failed", "query_stopped"])
def test_a_query_that_reads_nothing_has_no_rates(event: str) -> None:
    figures = QueryFigures(5.0)
    figures.update(Event("batch_committed", FUNNEL, BATCH))
    figures.update(Event(event, FUNNEL, {}))

    cells = {column.header: str(*column.cells) for column in build_table({FUNNEL: figures}, 200).columns}

    assert (cells["in/s"], cells["out/s"], cells["batch time"]) == ("0", "0", "23.5 s / 5 s")


def test_a_run_until_caught_up_compares_no_batch_with_the_trigger_of_the_spec() -> None:
    figures = QueryFigures(5.0)
    figures.update(Event("query_started", FUNNEL, {"batch": None, "trigger_seconds": None}))
    figures.update(Event("batch_committed", FUNNEL, BATCH))

    (column,) = [item for item in build_table({FUNNEL: figures}, 200).columns if item.header == "batch time"]

    assert list(column.cells) == [Text("23.5 s")]


def test_an_error_does_not_control_the_terminal(pipeline: Pipeline) -> None:
    terminal = Terminal(200)
    reason = "the value 'x\x1b[2J\x1b]0;title\x07' is no number"
    with started(pipeline, terminal) as table:
        table.show(Event("run_started", data={"guarantees": []}))
        table.show(
            Event("retry", FUNNEL, {"reason": reason, "wait_seconds": 2.0}, "2026-11-23T11:48:46.000Z")
        )
        table.say(reason)
        table._live.refresh()

    escaped = "the value 'x\\x1b[2J\\x1b]0;title\\x07' is no number"
    assert [line for line in terminal.lines if escaped in line] == [
        f"{run_table._local_time('2026-11-23T11:48:46.000Z')} funnel: {escaped}; again in 2.0 s",
        escaped,
    ]


@pytest.mark.parametrize("width", [80, 100, 120])
def test_a_start_leaves_no_ghost_and_glues_no_line(
    pipeline: Pipeline, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = Terminal(width)
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setattr(sys, "stderr", terminal)
    with started(pipeline, terminal) as table:
        table.page("http://127.0.0.1:4711/", "")
        for step in ("connecting to sources and sinks", "starting Spark"):
            table.step(step)
            table._live.refresh()
        table.show(Event("run_started", data={"guarantees": [GUARANTEE, GUARANTEE]}))
        table._live.refresh()
        table.show(Event("query_started", FUNNEL, {"batch": None}))
        table.show(Event("stopping", "", at="2026-11-23T11:48:46.000Z"))
        table._live.refresh()
        sys.stdout.write(f"averages, batch 1: 1 row\n{'x' * (width + 5)}\n")
        click.echo("from a function")
        click.echo("from a library", err=True)
        table._live.refresh()

    lines = terminal.lines
    assert [line[:14] for line in lines] == [
        "the live page ",
        "query   sink  ",
        "funnel  delta ",
        "funnel  delta ",
        "averages, batc",
        "x" * 14,
        "x" * 5,
        "from a functio",
        "from a library",
        "shop  0:00  lo",
        "query         ",
        "funnel        ",
        "purchases_by_c",
        lines[-1][:14],
    ]
    assert lines[-1].endswith(":46 finishing the batches in progress")
    assert lines[11].split()[:3] == ["funnel", "first", "batch"]


def test_the_steps_of_a_start_have_ticks_and_the_current_one_its_seconds(pipeline: Pipeline) -> None:
    terminal = Terminal(80)
    with started(pipeline, terminal) as table:
        table.step("connecting to sources and sinks")
        table.step("starting Spark")
        table._live.refresh()
        shown = terminal.lines

    assert shown[0] == "shop  0:00  log run.log"
    assert shown[1] == "✓ connecting to sources and sinks"
    assert shown[2][1:] == " starting Spark  0 s"


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "-"), (0.4, "0"), (9_999, "9999"), (12_300, "12.3k"), (1_204_000, "1.2M"), (2.5e9, "2.5G")],
)
def test_a_figure_is_short(value: float | None, text: str) -> None:
    assert format_number(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(48, "48 s"), (360, "6 min"), (9_000, "2.5 h"), (180_000, "2.1 d"), (-3, "-3 s")]
)
def test_a_time_has_its_largest_unit(seconds: float, text: str) -> None:
    assert format_span(seconds) == text
