"""Show a streaming view live in a notebook or on a terminal, as `millstream.display`."""

from __future__ import annotations

import contextlib
import threading
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from millstream.cli.cluster import use_buckets
from millstream.cli.project import find_spec
from millstream.cli.variables import spec_environment
from millstream.diagnostics.failure import InvalidInput
from millstream.diagnostics.finding import Severity
from millstream.diagnostics.render import render
from millstream.engine.background_threads import BackgroundThread
from millstream.frames.build_views import build_frames
from millstream.notebook.live_view import (
    NewestRows,
    choose_output_mode,
    empty_frame,
    flatten_windows,
    newest_rows,
    to_pandas_frame,
)
from millstream.notebook.plot import Axes
from millstream.notebook.screen import Cell, DisplaySnapshot, Output, notebook_kernel, running_cell_id
from millstream.pipeline.api import Builder
from millstream.pipeline.model import Pipeline
from millstream.pipeline.spec_file import load_spec
from millstream.spark.session import open_session

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame

    from millstream.notebook.screen import SnapshotOutput

__all__ = ["DisplayedView", "display"]

# Seconds between two checks whether the query has ended, because Spark sends no notification.
_LOOK = 0.5
_of_cells: dict[str, DisplayedView] = {}


class DisplayedView:
    """A view on display. It ends by itself, by `stop()`, or at the end of a `with` block."""

    def __init__(
        self, title: str, live: NewestRows | None, rows: pd.DataFrame, axes: dict[str, str | None]
    ) -> None:
        self._title = title
        self._live = live
        self._rows = rows
        self._axes = axes
        self._screen: SnapshotOutput = Output()
        self._refresh_requested = threading.Event()
        self._thread: BackgroundThread | None = None

    @property
    def rows(self) -> pd.DataFrame:
        """The rows on display, newest first."""
        return self._live.rows if self._live else self._rows

    @property
    def batches(self) -> int:
        """The number of batches so far; 0 for a static table."""
        return self._live.batches if self._live else 0

    @property
    def running(self) -> bool:
        """Whether more batches may arrive."""
        return self._live is not None and not self._refresh_requested.is_set() and self._live.running

    @property
    def error(self) -> str | None:
        """Spark's error if the query has failed, else None."""
        return self._live.error if self._live else None

    def stop(self) -> None:
        """Stop the display and wait for its last output. Further calls do nothing."""
        self._refresh_requested.set()
        if self._live is not None:
            self._live.changed.set()
            in_background = self._thread is not None and not self._thread.is_current()
            if in_background and self._thread is not None:
                self._thread.join()
            self._live.stop()
            if in_background:
                # A notebook that runs non-interactively ignores output from a thread.
                self._screen.show(self._last_snapshot())

    def __enter__(self) -> DisplayedView:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def follow(self, screen: SnapshotOutput, seconds: float | None) -> None:
        """Show each change until the query ends, `stop()` is called, or the time is over; then stop it."""
        self._screen = screen
        if self._live is None:
            screen.show(self._snapshot("a static table"))
            return
        end = None if seconds is None else time.monotonic() + seconds
        drawn = -1
        try:
            while True:
                if seconds is not None and drawn < 1 <= self._live.batches:
                    # The time counts from the first batch, which may take as long as all others.
                    end = time.monotonic() + seconds
                remaining = _LOOK if end is None else min(_LOOK, end - time.monotonic())
                has_ended = remaining <= 0 or not self.running
                if self._live.batches != drawn and not has_ended:
                    drawn = self._live.batches
                    screen.show(self._snapshot("waiting for rows" if not drawn else f"batch {drawn}, live"))
                if has_ended:
                    break
                self._live.changed.wait(remaining)
                self._live.changed.clear()
        finally:
            self._refresh_requested.set()
            self._live.stop()
            screen.show(self._last_snapshot())

    def beside(self, screen: SnapshotOutput, seconds: float | None) -> None:
        """Run `follow` in a thread, after showing the first output in the cell itself."""
        self._screen = screen
        if self._live is not None:
            screen.show(self._snapshot("waiting for rows"))
        self._thread = BackgroundThread("display", partial(self.follow, screen, seconds), restarts=0)
        self._thread.start()

    def _last_snapshot(self) -> DisplaySnapshot:
        """Return the last output."""
        return self._snapshot(
            f"ended: {self.error}" if self.error else f"stopped after {self.batches} batches"
        )

    def _snapshot(self, state: str) -> DisplaySnapshot:
        rows = self.rows
        return DisplaySnapshot(self._title, state, rows, Axes.of(rows, **self._axes) if len(rows) else None)


def display(
    what: DataFrame | Builder | Pipeline | Path | str,
    view: str | None = None,
    *,
    seconds: float | None = 60,
    wait: bool = True,
    rows: int = 1000,
    every: str = "1 second",
    output_mode: str | None = None,
    x: str | None = None,
    y: str | None = None,
    by: str | None = None,
) -> DisplayedView:
    """Show a streaming view live: a table and a plot in a notebook, text elsewhere.

    `what` is a DataFrame, a pipeline of the Python API, or the path of a spec or its folder. `view` is the name of a
    view or source of it, by default the input of the first query. The display waits up to `seconds` for the first
    batch and ends `seconds` after it (None: when stopped). With `wait=False` it continues in the background after
    the cell. Interrupting or re-running the cell, or `stop()`, ends it sooner. At most `rows` rows are shown, those
    with the latest times. `every` is the interval between batches.

    By default an aggregation is shown in full, in complete mode, and other rows as they arrive; `output_mode` changes
    this. `x`, `y` and `by` are the columns of the plot: a time, a number, and the name of each line. By default they
    are chosen by type. Nothing is written: no sink runs, and the checkpoint is a temporary folder.
    Raises `InvalidInput` if a spec has errors, a name is unknown, or Spark cannot run the view.
    """
    title, frame = _frame(what, view)
    frame = flatten_windows(frame)
    for name in filter(None, (x, y, by)):
        if name not in frame.columns:
            raise InvalidInput(
                f"{title} has no column '{name}'", f"its columns are {', '.join(frame.columns)}"
            )
    axes = {"x": x, "y": y, "by": by}
    shell = notebook_kernel()
    cell_id = running_cell_id(shell)
    if cell_id is not None and cell_id in _of_cells:
        _of_cells.pop(cell_id).stop()
    if frame.isStreaming:
        live = NewestRows(frame, title, choose_output_mode(frame, title, output_mode), rows, every)
        view_display = DisplayedView(title, live, empty_frame(frame.columns), axes)
    else:
        view_display = DisplayedView(title, None, to_pandas_frame(newest_rows(frame, rows)), axes)
    if cell_id is not None:
        _of_cells[cell_id] = view_display
    screen: SnapshotOutput = Cell(uuid4().hex, shell) if shell is not None else Output()
    if not wait:
        view_display.beside(screen, seconds)
        return view_display
    # Interrupted by the stop button of the cell: keep the last output.
    with contextlib.suppress(KeyboardInterrupt):
        view_display.follow(screen, seconds)
    return view_display


def _frame(what: Any, view: str | None) -> tuple[str, DataFrame]:
    """Return the title and the DataFrame to display."""
    if not isinstance(what, Builder | Pipeline | Path | str):
        return view or "DataFrame", what
    pipeline = use_buckets(_pipeline(what))
    name = view or (pipeline.reads(next(iter(pipeline.queries))) if pipeline.queries else None)
    names = [*pipeline.views, *pipeline.sources]
    if name not in names:
        raise InvalidInput(f"there is no view or source '{name}'", f"known names: {', '.join(names)}")
    log = pipeline.folder / ".millstream" / "logs" / "notebook.log"
    spark = open_session(pipeline.name, dict(pipeline.spark), log=log)
    return name, build_frames(spark, pipeline)[name]


def _pipeline(what: Builder | Pipeline | Path | str) -> Pipeline:
    if isinstance(what, Pipeline):
        return what
    if isinstance(what, Builder):
        return what.build()
    path = find_spec(Path(what))
    loaded = load_spec(path, spec_environment(path.parent, None))
    errors = [finding for finding in loaded.findings if finding.severity is Severity.ERROR]
    if errors or loaded.pipeline is None:
        raise InvalidInput(f"{path} has errors\n{render(errors, loaded.texts)}", "see 'millstream check'")
    return loaded.pipeline
