"""Past runs of a project: listed, and one of them looked at."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING

import click

from millstream.cli.table import table
from millstream.diagnostics.failure import MillstreamError, WrongUse

if TYPE_CHECKING:
    from pathlib import Path

    from millstream.dashboard.live import Wish
    from millstream.dashboard.runlog import Past
    from millstream.pipeline.load import Loaded


def command(loaded: Loaded, run: str, wish: Wish, *, as_json: bool) -> int:
    """List the runs that are on disk, or serve the page over the one that is named, until Ctrl-C."""
    from millstream.dashboard.live import runs_of
    from millstream.dashboard.runlog import past

    assert loaded.pipeline is not None
    runs = past(runs_of(loaded.pipeline))
    if not run:
        show(runs, as_json=as_json)
        return 0
    chosen = [one for one in runs if one.id == run] or [one for one in runs if one.id.startswith(run)]
    if len(chosen) != 1:
        known = ", ".join(one.id for one in (chosen or runs)[:5]) or "none yet"
        several = "several runs are" if chosen else "no run is"
        raise WrongUse(f"{several} called '{run}'", f"there are {known}; millstream run --history lists them")
    return serve(chosen[0].folder, wish)


def show(runs: list[Past], *, as_json: bool) -> None:
    """Print runs, the latest first."""
    if as_json:
        for one in runs:
            told = {"run": one.id, "pipeline": one.pipeline, "started": one.started, "ended": one.ended}
            click.echo(json.dumps({**told, "exit_code": one.exit_code}))
        return
    if not runs:
        click.echo("no run is kept here; millstream run keeps each in .millstream/runs", err=True)
        return
    rows = [[one.id, one.pipeline, one.started, one.ended or "", ended(one)] for one in runs]
    click.echo(table(["run", "pipeline", "started", "ended", "how"], rows), nl=False)


def ended(run: Past) -> str:
    """How a run ended, in words."""
    if run.ended is None:
        return "runs, or was killed"
    words = {0: "stopped", 1: "a query gave up"}
    return words.get(run.exit_code or 0, f"ended with exit code {run.exit_code}")


def serve(folder: Path, wish: Wish) -> int:
    """Serve the page over a run that is over, until Ctrl-C."""
    from millstream.dashboard import page
    from millstream.dashboard.replay import Absent, opened

    try:
        feed = opened(folder, folder.name)
    except (OSError, ValueError, EOFError) as torn:
        raise MillstreamError(
            f"the log of run {folder.name} cannot be read: {torn}", "look at another run"
        ) from torn
    served = page.serve(feed, Absent(), host=wish.host, port=wish.port)
    click.echo(f"run {folder.name} is shown at {served.address}; Ctrl-C ends it", err=True)
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        served.close()
    return 0
