"""`millstream demo`: the e-commerce pipeline with a broker, a database and traffic, in one command."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from millstream.cli.init import copy_example
from millstream.cli.project import open_project
from millstream.cli.steps import Steps
from millstream.diagnostics.failure import MillstreamError, WrongUse
from millstream.spec.duration import Duration

if TYPE_CHECKING:
    from collections.abc import Mapping

EXAMPLE = "ecommerce"
FOLDER = Path(".millstream") / "demo" / EXAMPLE
# What the generator calls a topic, and the funnel's column that counts it.
COUNTS = {"clicks": "click_count", "cart_events": "cart_count", "purchases": "purchase_count"}


@click.command("demo", short_help="Stack, traffic and the e-commerce pipeline in one command.")
@click.option(
    "--for", "length", metavar="TIME", help="End after this long, such as 60s, and print the funnel."
)
@click.option("--rate", type=click.FloatRange(1), help="Events a second. [default: as traffic.yml says]")
@click.option("-v", "--verbose", is_flag=True, help="Say which settings were chosen, and why.")
def command(length: str | None, rate: float | None, *, verbose: bool) -> int:
    """Start a Kafka broker and a Postgres server, send them a shop's traffic, and run the pipeline over it.

    Everything lies in .millstream/demo, which each demo starts afresh. Ctrl-C stops all of it.
    """
    from millstream.cli.run import start
    from millstream.devstack import stack
    from millstream.runtime.run import RunOptions

    seconds = _seconds(length)
    folder = FOLDER.absolute()
    with suppress(MillstreamError):
        stack.down(folder)
    shutil.rmtree(folder, ignore_errors=True)
    copy_example(EXAMPLE, folder)
    steps = Steps()
    with ExitStack() as running:
        running.callback(stack.down, folder)
        stack.up(folder, lambda _: _needs(folder), steps.tell, attached=True)
        steps.done()
        traffic = Traffic(folder, rate)
        running.callback(traffic.end)

        def afterwards() -> RunOptions | None:
            """When the time is over the traffic stops, and what it left in the topics is read to the end."""
            return RunOptions(until_caught_up=True) if traffic.end() else None

        loaded = open_project(folder)
        code = start(loaded, RunOptions(seconds=seconds), verbose=verbose, afterwards=afterwards)
        summary = traffic.summary
        if code == 0:
            _report(loaded.pipeline, summary)
        click.echo(
            f"the project is {FOLDER}; make it yours: millstream init my-shop --from {EXAMPLE}", err=True
        )
    return code


class Traffic:
    """The generator, in a process of its own."""

    def __init__(self, folder: Path, rate: float | None) -> None:
        logs = folder / ".millstream" / "logs"
        logs.mkdir(parents=True, exist_ok=True)
        self.summary: Mapping[str, Any] | None = None
        pace = [] if rate is None else ["--rate", str(rate)]
        with (logs / "traffic.log").open("w") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "millstream", "traffic", "-f", str(folder), "--json", *pace],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                # A Ctrl-C is for the run; it ends the traffic when it has ended itself.
                start_new_session=True,
            )

    def end(self) -> bool:
        """Stop sending and wait until all is sent; True at the first call."""
        if self.summary is not None:
            return False
        self._process.send_signal(signal.SIGINT)
        said, _ = self._process.communicate(timeout=60)
        self.summary = json.loads(said) if said.strip() else {}
        return True


def _needs(folder: Path) -> list[Any]:
    """The topics that the example reads."""
    pipeline = open_project(folder).pipeline
    assert pipeline is not None
    return [need for entry in pipeline.sources.values() for need in entry.source.needs()]


def _report(pipeline: Any, summary: Mapping[str, Any] | None) -> None:
    """Print the funnel and hold it against what was sent."""
    from millstream.cli.table import table

    found = pipeline.queries["funnel"].to[0].sink.rows(limit=1000)
    if found is None:
        return
    names, rows = found
    rows = sorted(rows, key=lambda row: str(row[names.index("window_start")]))
    click.echo(table(names, rows), nl=False)
    for told in (summary or {}).get("topics", []):
        topic = told["topic"]
        counted = sum(int(row[names.index(COUNTS[topic])]) for row in rows)
        sent = told["good"] + told["late"]
        dropped = sent - counted
        verdict = "agrees" if 0 <= dropped <= told["late"] else "DOES NOT AGREE"
        click.echo(
            f"{topic}: {told['sent']:,} sent = {counted:,} counted + {dropped:,} too late + "
            f"{told['duplicates']:,} repeated + {told['malformed']:,} malformed: {verdict}"
        )


def _seconds(length: str | None) -> float | None:
    try:
        return None if length is None else Duration(length).seconds
    except ValueError as wrong:
        raise WrongUse(str(wrong), "write it as 60s or '5 minutes'") from wrong
