"""List the past runs of a project, or show one of them."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING

import click

from millstream.cli.table import format_table
from millstream.diagnostics.failure import RESTART, InvalidInput, MillstreamError

if TYPE_CHECKING:
    from pathlib import Path

    from millstream.dashboard.live_run import PageOptions
    from millstream.dashboard.run_log import PastRun
    from millstream.pipeline.spec_file import LoadedSpec


def command(loaded: LoadedSpec, run: str, page: PageOptions, *, as_json: bool) -> int:
    """List the recorded runs, or serve the page of the named run until Ctrl-C."""
    from millstream.dashboard.live_run import runs_folder
    from millstream.dashboard.run_log import list_runs

    assert loaded.pipeline is not None
    runs = list_runs(runs_folder(loaded.pipeline))
    if not run:
        print_runs(runs, as_json=as_json)
        return 0
    chosen = [entry for entry in runs if entry.id == run] or [
        entry for entry in runs if entry.id.startswith(run)
    ]
    if len(chosen) != 1:
        run_ids = ", ".join(entry.id for entry in (chosen or runs)[:5]) or "none yet"
        problem = "several runs are" if chosen else "no run is"
        raise InvalidInput(
            f"{problem} called '{run}'", f"known runs: {run_ids}; 'millstream run --history' lists all"
        )
    return serve_run(chosen[0].folder, page)


def print_runs(runs: list[PastRun], *, as_json: bool) -> None:
    """Print runs, latest first."""
    if as_json:
        for entry in runs:
            fields = {
                "run": entry.id,
                "pipeline": entry.pipeline,
                "started": entry.started,
                "ended": entry.ended,
            }
            click.echo(json.dumps({**fields, "exit_code": entry.exit_code}))
        return
    if not runs:
        click.echo("no runs are recorded here; 'millstream run' records each in .millstream/runs", err=True)
        return
    rows = [
        [entry.id, entry.pipeline, entry.started, entry.ended or "", describe_end(entry)] for entry in runs
    ]
    click.echo(format_table(["run", "pipeline", "started", "ended", "how"], rows), nl=False)


def describe_end(run: PastRun) -> str:
    """Return in words how a run ended."""
    if run.ended is None:
        return "running, or killed"
    words = {0: "stopped", 1: "a query gave up", RESTART: "few files were left to open"}
    return words.get(run.exit_code or 0, f"ended with exit code {run.exit_code}")


def serve_run(folder: Path, page: PageOptions) -> int:
    """Serve the page of a past run until Ctrl-C."""
    from millstream.dashboard.http import app
    from millstream.dashboard.replay_server import NoPreviews, load_past_run

    try:
        feed = load_past_run(folder, folder.name)
    except (OSError, ValueError, EOFError) as error:
        raise MillstreamError(
            f"the log of run {folder.name} cannot be read: {error}", "choose another run"
        ) from error
    server = app.serve(feed, NoPreviews(), host=page.host, port=page.port)
    click.echo(f"run {folder.name} is shown at {server.address}; press Ctrl-C to stop", err=True)
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        server.close()
    return 0
