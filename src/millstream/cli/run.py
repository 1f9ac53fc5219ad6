"""`millstream run`: check, then run the pipeline until it is caught up, its time is over or it is stopped."""

from __future__ import annotations

import signal
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import click

from millstream.cli.project import open_project, project_options
from millstream.diagnostics.failure import WrongUse
from millstream.spec.duration import Duration

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from millstream.dashboard.live import Wish
    from millstream.diagnostics.finding import Finding
    from millstream.pipeline.load import Loaded
    from millstream.runtime.checking import Checked
    from millstream.runtime.run import RunOptions
    from millstream.runtime.supervisor import Supervisor


@click.command("run", short_help="Run the pipeline.")
@project_options
@click.option("--select", multiple=True, metavar="QUERY", help="Run this query; may be given again.")
@click.option("--exclude", multiple=True, metavar="QUERY", help="Leave this query out; may be given again.")
@click.option("--until-caught-up", is_flag=True, help="Read every source to where it stands, then end.")
@click.option("--for", "length", metavar="TIME", help="End gracefully after this long: 60s, 5 minutes.")
@click.option("--repair", is_flag=True, help="Mend what may be mended in a damaged checkpoint, then run.")
@click.option("--accept-gap", is_flag=True, help="Go on without records deleted before they were read.")
@click.option("--adopt", is_flag=True, help="Take over what sinks hold of other checkpoints, then run.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line for each event.")
@click.option("-v", "--verbose", is_flag=True, help="Say which settings were chosen, and why.")
@click.option("--no-page", is_flag=True, help="Serve no live page.")
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    help="Serve the live page here; 0 is any free port. [default: 4711, or the next that is free]",
)
@click.option(
    "--host",
    metavar="ADDRESS",
    help="Serve it at this address; from elsewhere a token is needed. [default: 127.0.0.1]",
)
@click.option(
    "--history",
    is_flag=False,
    flag_value="",
    metavar="[RUN]",
    help="List past runs, or serve the page over one of them.",
)
def command(
    file: Path | None,
    overrides: Sequence[str],
    env_file: Path | None,
    select: tuple[str, ...],
    exclude: tuple[str, ...],
    *,
    until_caught_up: bool,
    length: str | None,
    repair: bool,
    accept_gap: bool,
    adopt: bool,
    as_json: bool,
    verbose: bool,
    no_page: bool,
    port: int | None,
    host: str | None,
    history: str | None,
) -> int:
    """Check the pipeline, then run its queries in one Spark session.

    Ends with 0 when it was stopped gracefully or has nothing more to read, with 1 when a query gave up, with 3
    when a checkpoint cannot go on.
    The first Ctrl-C or SIGTERM lets the batches in progress finish; the second ends at once.
    """
    from millstream.dashboard.live import Wish
    from millstream.dashboard.page import LOCAL
    from millstream.runtime.run import RunOptions

    wish = Wish(host or LOCAL, port, served=not no_page)
    loaded = open_project(file, overrides, env_file)
    if history is not None:
        from millstream.cli.history import command as past

        return past(loaded, history, wish, as_json=as_json)
    options = RunOptions(select, exclude, until_caught_up, _seconds(length), repair, accept_gap, adopt)
    return start(loaded, options, as_json=as_json, verbose=verbose, wish=wish)


def start(
    loaded: Loaded,
    options: RunOptions,
    *,
    as_json: bool = False,
    verbose: bool = False,
    known: Checked | None = None,
    wish: Wish | None = None,
    afterwards: Callable[[], RunOptions | None] = lambda: None,
) -> int:
    """Run a loaded pipeline with the display that fits: JSON lines, the live table, or plain lines.

    `afterwards` is called when the run has ended well and nobody asked it to; it may give what to run next in
    the same session. `known` is what a check with the session of this process has found already. `wish` says where
    the live page is served, the usual place unless given. Gives the exit code.
    """
    from millstream.cli.project import refuse
    from millstream.dashboard.live import LivePage, Wish
    from millstream.runtime.checking import check
    from millstream.runtime.events import Events
    from millstream.runtime.gaps import accept
    from millstream.runtime.run import chosen, lock, probe, run
    from millstream.runtime.session import applied, open_session, stop
    from millstream.runtime.soundness import sound

    pipeline = loaded.pipeline
    assert pipeline is not None
    checked = known or check(loaded)
    if checked.failed:
        refuse(_untold(checked, loaded), checked.texts)
    queries = chosen(pipeline, options)
    log = pipeline.folder / ".millstream" / "logs" / f"{pipeline.name}.log"
    events = Events()
    with ExitStack() as held, _Ending() as ending:
        display = held.enter_context(_display(pipeline, queries, log, as_json=as_json))
        page = held.enter_context(LivePage(pipeline, queries, wish or Wish()))
        events.listen(page.feed.take)
        events.listen(display.show)
        held.callback(events.close)
        display.page(page.address, page.refused)
        for note in page.notes:
            display.say(note)
        display.say("asking the sources and sinks")
        probed = probe(pipeline, queries)
        lock(pipeline, queries, held)
        sound(pipeline, queries, mend=options.repair, say=display.say)
        gaps = accept(pipeline, queries, probed, events, accepted=options.accept_gap)
        display.say("starting Spark")
        spark = open_session(pipeline.name, dict(pipeline.spark), log=log)
        held.callback(stop, spark)
        held.enter_context(page.spark(spark))
        if verbose:
            for setting in applied():
                display.say(f"{setting.key} = {setting.value}  ({setting.reason})")
        checked = known or check(loaded, spark)
        refuse(_untold(checked, loaded), checked.texts)
        page.checked(checked)
        kept = [promise.plain() for promise in checked.promises if promise.query in queries]
        events.tell("run_started", pipeline=pipeline.name, queries=queries, log=str(log), guarantees=kept)
        following: RunOptions | None = options
        while following is not None:
            fine = run(spark, pipeline, following, events, probed, gaps=gaps, on_supervisor=ending.watch)
            following, gaps = afterwards() if fine and not ending.asked else None, {}
        code = ending.exit_code
        events.tell("run_stopped", exit_code=code)
    return 130 if ending.at_once else code


def _untold(checked: Checked, loaded: Loaded) -> list[Finding]:
    """The findings that were not printed when the spec was loaded."""
    return [found for found in checked.findings if found not in loaded.findings]


class _Ending:
    """Turns signals into requests to end: the first is graceful, the second is not."""

    def __init__(self) -> None:
        self._supervisor: Supervisor | None = None
        self._asked = 0
        self._before: dict[int, Any] = {}

    @property
    def asked(self) -> bool:
        """Was it asked to end?"""
        return self._asked > 0

    @property
    def at_once(self) -> bool:
        """Was it asked a second time?"""
        return self._asked > 1

    @property
    def exit_code(self) -> int:
        """What the last supervisor ended with."""
        return 0 if self._supervisor is None else self._supervisor.exit_code

    def watch(self, supervisor: Supervisor) -> None:
        """From here on signals go to that supervisor."""
        self._supervisor = supervisor
        for _ in range(self._asked):
            supervisor.end()

    def __enter__(self) -> _Ending:
        for number in (signal.SIGINT, signal.SIGTERM):
            self._before[number] = signal.signal(number, self._take)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _take(self, number: int, frame: object) -> None:  # noqa: ARG002 - a signal handler's signature
        self._asked += 1
        if self._supervisor is not None:
            self._supervisor.end()
        elif number == signal.SIGINT or self._asked > 1:
            raise KeyboardInterrupt
        else:
            raise SystemExit(0)


def _display(pipeline: Any, queries: list[str], log: Path, *, as_json: bool) -> Any:
    """JSON lines for programs, a live table on a terminal, plain lines elsewhere."""
    from millstream.cli.display import JsonLines, PlainLines

    if as_json:
        return JsonLines()
    if sys.stderr.isatty():
        from millstream.cli.live import LiveTable

        return LiveTable(pipeline, queries, log)
    return PlainLines(log)


def _seconds(length: str | None) -> float | None:
    try:
        return None if length is None else Duration(length).seconds
    except ValueError as wrong:
        raise WrongUse(str(wrong), "write it as 60s or '5 minutes'") from wrong
