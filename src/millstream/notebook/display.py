"""`millstream.display`: a streaming view shown live, in a notebook or on a terminal."""

from __future__ import annotations

import contextlib
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from millstream.cli.environment import environment
from millstream.cli.project import find_spec
from millstream.diagnostics.failure import WrongUse
from millstream.diagnostics.finding import Severity
from millstream.diagnostics.render import render
from millstream.notebook.live import Newest, as_pandas, empty, flat, mode_of, newest
from millstream.notebook.plot import Axes
from millstream.notebook.screen import Cell, Output, Sight, cell, kernel
from millstream.pipeline.api import Builder
from millstream.pipeline.load import load
from millstream.pipeline.model import Pipeline
from millstream.runtime.assemble import assemble
from millstream.runtime.session import open_session

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame

    from millstream.notebook.screen import Screen

__all__ = ["Shown", "display"]

# A query that has ended by itself tells nobody: it is looked at so often, in seconds.
_LOOK = 0.5
_of_cells: dict[str, Shown] = {}


class Shown:
    """A view that is shown; ends by itself, by `stop()`, or as a context manager."""

    def __init__(
        self, title: str, live: Newest | None, rows: pd.DataFrame, axes: dict[str, str | None]
    ) -> None:
        self._title = title
        self._live = live
        self._rows = rows
        self._axes = axes
        self._screen: Screen = Output()
        self._asked = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def rows(self) -> pd.DataFrame:
        """The rows that are kept, the newest first."""
        return self._live.rows if self._live else self._rows

    @property
    def batches(self) -> int:
        """Batches that have come; 0 for a static table."""
        return self._live.batches if self._live else 0

    @property
    def running(self) -> bool:
        """Is more to come?"""
        return self._live is not None and not self._asked.is_set() and self._live.running

    @property
    def error(self) -> str | None:
        """Why the view ended by itself, in Spark's words; None when it did not."""
        return self._live.error if self._live else None

    def stop(self) -> None:
        """End it and wait for its last picture; does nothing the second time."""
        self._asked.set()
        if self._live is not None:
            self._live.changed.set()
            beside = self._thread is not None and self._thread is not threading.current_thread()
            if beside and self._thread is not None:
                self._thread.join()
            self._live.stop()
            if beside:
                # A notebook that is run without a person takes no picture from a thread.
                self._screen.show(self._last())

    def __enter__(self) -> Shown:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def follow(self, screen: Screen, seconds: float | None) -> None:
        """Show each change until it ends, is asked to, or the time is over; then end it."""
        self._screen = screen
        if self._live is None:
            screen.show(self._sight("a static table"))
            return
        end = None if seconds is None else time.monotonic() + seconds
        drawn = -1
        try:
            while True:
                if seconds is not None and drawn < 1 <= self._live.batches:
                    # The first batch may take as long as all others.
                    end = time.monotonic() + seconds
                left = _LOOK if end is None else min(_LOOK, end - time.monotonic())
                over = left <= 0 or not self.running
                if self._live.batches != drawn and not over:
                    drawn = self._live.batches
                    screen.show(self._sight("waiting for rows" if not drawn else f"batch {drawn}, live"))
                if over:
                    break
                self._live.changed.wait(left)
                self._live.changed.clear()
        finally:
            self._asked.set()
            self._live.stop()
            screen.show(self._last())

    def beside(self, screen: Screen, seconds: float | None) -> None:
        """As `follow`, in a thread; the first picture is the cell's own."""
        self._screen = screen
        if self._live is not None:
            screen.show(self._sight("waiting for rows"))
        self._thread = threading.Thread(
            target=self.follow, args=(screen, seconds), name="display", daemon=True
        )
        self._thread.start()

    def _last(self) -> Sight:
        """What is left to be seen."""
        return self._sight(f"ended: {self.error}" if self.error else f"stopped after {self.batches} batches")

    def _sight(self, state: str) -> Sight:
        rows = self.rows
        return Sight(self._title, state, rows, Axes.of(rows, **self._axes) if len(rows) else None)


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
) -> Shown:
    """Show a streaming view live: a table and a plot in a notebook, text elsewhere.

    `what` is a DataFrame, a pipeline of the Python API, or the path of a spec or its folder; `view` names a view or
    source of it, that of the first query unless given. It runs for `seconds` from its first batch, which it awaits
    as long (None: until it is stopped), also when the cell is done where `wait` is false; interrupting or re-running
    the cell, or `stop()`, ends it sooner. At most `rows` rows are kept, those with the latest times; a batch comes
    `every` so often.

    An aggregation is shown whole, in complete mode, else rows as they come, unless `output_mode` says otherwise.
    `x`, `y` and `by` name the columns of the plot: a time, a number, what tells lines apart; by their types unless
    given. Nothing is written: no sink of the pipeline runs, and the checkpoint is a folder that goes with the look.
    Raises `WrongUse` for a spec with errors, an unknown name, and a view that Spark cannot run.
    """
    title, frame = _frame(what, view)
    frame = flat(frame)
    for name in filter(None, (x, y, by)):
        if name not in frame.columns:
            raise WrongUse(f"{title} has no column '{name}'", f"its columns are {', '.join(frame.columns)}")
    axes = {"x": x, "y": y, "by": by}
    shell = kernel()
    place = cell(shell)
    if place is not None and place in _of_cells:
        _of_cells.pop(place).stop()
    if frame.isStreaming:
        live = Newest(frame, title, mode_of(frame, title, output_mode), rows, every)
        shown = Shown(title, live, empty(frame.columns), axes)
    else:
        shown = Shown(title, None, as_pandas(newest(frame, rows)), axes)
    if place is not None:
        _of_cells[place] = shown
    screen: Screen = Cell(uuid4().hex, shell) if shell is not None else Output()
    if not wait:
        shown.beside(screen, seconds)
        return shown
    # The cell's stop button: what has been shown stays.
    with contextlib.suppress(KeyboardInterrupt):
        shown.follow(screen, seconds)
    return shown


def _frame(what: Any, view: str | None) -> tuple[str, DataFrame]:
    """The title and the DataFrame that are meant."""
    if not isinstance(what, Builder | Pipeline | Path | str):
        return view or "DataFrame", what
    pipeline = _pipeline(what)
    name = view or (pipeline.reads(next(iter(pipeline.queries))) if pipeline.queries else None)
    known = [*pipeline.views, *pipeline.sources]
    if name not in known:
        raise WrongUse(f"there is no view or source '{name}'", f"there are {', '.join(known)}")
    log = pipeline.folder / ".millstream" / "logs" / "notebook.log"
    spark = open_session(pipeline.name, dict(pipeline.spark), log=log)
    return name, assemble(spark, pipeline)[name]


def _pipeline(what: Builder | Pipeline | Path | str) -> Pipeline:
    if isinstance(what, Pipeline):
        return what
    if isinstance(what, Builder):
        return what.build()
    path = find_spec(Path(what))
    loaded = load(path, environment(path.parent, None))
    wrong = [found for found in loaded.findings if found.severity is Severity.ERROR]
    if wrong or loaded.pipeline is None:
        raise WrongUse(f"{path} has errors\n{render(wrong, loaded.texts)}", "see 'millstream check'")
    return loaded.pipeline
