"""`millstream run`: check the pipeline, then run it until it is caught up, its time is over or it is stopped."""

from __future__ import annotations

import signal
import sys
import threading
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from millstream.cli.cluster import use_cluster
from millstream.cli.messages import verbose_run
from millstream.cli.project import complete_query, open_project, project_options
from millstream.cli.signals import INTERRUPTED, handle_ending
from millstream.diagnostics.failure import InvalidInput, NotReady
from millstream.spec.duration import Duration

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    from millstream.checking.check import CheckResult
    from millstream.dashboard.live_run import PageOptions
    from millstream.diagnostics.finding import Finding
    from millstream.engine.run import RunOptions
    from millstream.engine.supervisor import Supervisor
    from millstream.pipeline.spec_file import LoadedSpec


@click.command("run", short_help="Run the pipeline.")
@project_options
@click.option(
    "--select",
    multiple=True,
    metavar="QUERY",
    shell_complete=complete_query,
    help="Run only this query; can be repeated.",
)
@click.option(
    "--exclude",
    multiple=True,
    metavar="QUERY",
    shell_complete=complete_query,
    help="Do not run this query; can be repeated.",
)
@click.option(
    "--until-caught-up", is_flag=True, help="Process all data that is in the sources at the start, then stop."
)
@click.option(
    "--for",
    "length",
    metavar="TIME",
    help="Stop gracefully when this time, such as 60s or '5 minutes', has passed since the first batch.",
)
@click.option(
    "--master",
    metavar="URL",
    help="Run on this cluster, such as spark://HOST:7077, instead of the spec's spark.master.",
)
@click.option(
    "--repair", is_flag=True, help="Repair damaged checkpoints if the repair loses no rows, then run."
)
@click.option(
    "--accept-gap",
    is_flag=True,
    help="Continue even if a source deleted records before the query read them; the results lack these records.",
)
@click.option(
    "--adopt",
    is_flag=True,
    help="Write to sinks although they have rows that this query wrote from another checkpoint, for example "
    "before a reset. Rows that the query writes again are then in the sink twice, unless the sink replaces "
    "rows by key.",
)
@click.option(
    "--accept",
    multiple=True,
    metavar="CODE",
    help="Start a changed query although it does not match its checkpoint; 'millstream plan' prints the "
    "CODE for the change.",
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print what happens in the run (starts, batches, retries, failures) as JSON, one object per line.",
)
@verbose_run
@click.option("--no-page", is_flag=True, help="Do not serve the live page.")
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    help="Port of the live page; 0 is any free port. [default: 4711, or the next free port]",
)
@click.option(
    "--host",
    metavar="ADDRESS",
    help="Serve the live page at this address; viewers need a token unless it is a loopback address. "
    "[default: 127.0.0.1]",
)
@click.option(
    "--history",
    is_flag=False,
    flag_value="",
    metavar="[RUN]",
    help="List past runs, or serve the live page of past run RUN.",
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
    master: str | None,
    repair: bool,
    accept_gap: bool,
    adopt: bool,
    accept: tuple[str, ...],
    as_json: bool,
    verbose: bool,
    no_page: bool,
    port: int | None,
    host: str | None,
    history: str | None,
) -> int:
    """Check the pipeline, then run its queries in one Spark session.

    Exits with 0 after a graceful stop or when --until-caught-up is done. Exits with 1 if a query failed and
    cannot be restarted, and with 3 if a query cannot resume from its checkpoint. Exits with 75 if the process
    is about to reach its limit of open files and must be started again.

    After Ctrl-C or SIGTERM, or when the terminal is closed, the run finishes the batches in progress and then
    stops. A second Ctrl-C or SIGTERM stops the run at once.
    """
    from millstream.dashboard.http.app import LOCAL, refuse_taken_port
    from millstream.dashboard.live_run import PageOptions
    from millstream.engine.run import RunOptions

    page_options = PageOptions(host or LOCAL, port, is_served=not no_page)
    if port and not no_page:
        refuse_taken_port(page_options.host, port)
    loaded = use_cluster(open_project(file, overrides, env_file), master)
    if history is not None:
        from millstream.cli.run.history import command as past

        return past(loaded, history, page_options, as_json=as_json)
    options = RunOptions(
        select, exclude, until_caught_up, _seconds(length), repair, accept_gap, adopt, accept
    )
    return start(loaded, options, as_json=as_json, verbose=verbose, page_options=page_options)


def start(
    loaded: LoadedSpec,
    options: RunOptions,
    *,
    as_json: bool = False,
    verbose: bool = False,
    known: CheckResult | None = None,
    page_options: PageOptions | None = None,
    afterwards: Callable[[], RunOptions | None] = lambda: None,
) -> int:
    """Run a loaded pipeline, display it as JSON lines, live table or plain lines, and return the exit code.

    When the run ends successfully without a request to end, `afterwards` is called and may return the options of a
    next run in the same session. `known` is the result of an earlier check with this process's session.
    `page_options` is the address of the live page; by default the standard one.
    """
    from millstream.analysis.explain.runtime_behaviour import describe_small_batch
    from millstream.checking import passed_check
    from millstream.checking.check import check
    from millstream.checking.passed_check import PassedCheck
    from millstream.checkpoint.remote.path import RemotePath
    from millstream.cli.project import exit_on_errors, exit_with_place
    from millstream.dashboard.live_run import LivePage, PageOptions
    from millstream.engine.delivery.undelivered import check_start, orphan_warnings
    from millstream.engine.events.event_bus import EventBus
    from millstream.engine.recovery.checkpoint_check import check_checkpoints
    from millstream.engine.recovery.data_loss import accept_gaps
    from millstream.engine.run import choose_queries, lock_checkpoints, probe_connections, run_pipeline
    from millstream.frames.bucket_access import require_buckets
    from millstream.frames.default_file_system import require_schemes
    from millstream.frames.executor_requirements import require_executors
    from millstream.spark import settings
    from millstream.spark.session import applied_settings, open_session, stop_session

    pipeline = loaded.pipeline
    assert pipeline is not None
    checked = known or check(loaded)
    if checked.has_errors:
        exit_on_errors(_unprinted(checked, loaded), checked.texts)
    queries = choose_queries(pipeline, options)
    log = pipeline.folder / ".millstream" / "logs" / f"{pipeline.name}.log"
    events = EventBus()
    with ExitStack() as stack, _Ending() as ending:
        display = stack.enter_context(_display(pipeline, queries, log, as_json=as_json))
        page = stack.enter_context(LivePage(pipeline, queries, page_options or PageOptions()))
        events.listen(page.feed.take)
        events.listen(display.show)
        stack.callback(events.close)
        display.page(page.address, page.reason_not_served)
        for note in page.notes:
            display.say(note)
        display.step("connecting to sources and sinks")
        events.emit("phase", text="connecting to sources and sinks")
        try:
            probed = probe_connections(pipeline, queries)
        except NotReady as failure:
            exit_with_place(failure, loaded)
        folders = [str(pipeline.checkpoint_folder(query)) for query in queries]
        is_remote = any(isinstance(pipeline.checkpoint_folder(query), RemotePath) for query in queries)

        def open_spark() -> SparkSession:
            display.step("starting Spark, usually 10 to 20 s")
            events.emit("phase", text="starting Spark")
            conf = settings.with_remote_checkpoints(pipeline.spark, folders)
            spark = open_session(pipeline.name, conf, log=log)
            stack.callback(stop_session, spark)
            try:
                require_schemes(spark, pipeline, queries)
                require_buckets(spark, pipeline, queries)
            except NotReady as failure:
                exit_with_place(failure, loaded)
            return spark

        # The lease of a remote checkpoint is taken through Spark's client of the file system, and all that follows
        # reads the checkpoint through it. A local one is checked before anybody waits for Spark.
        spark = open_spark() if is_remote else None
        lock_checkpoints(pipeline, queries, stack)
        check_checkpoints(pipeline, queries, repair=options.repair, say=display.say)
        check_start(pipeline, queries)
        for warning in orphan_warnings(pipeline):
            display.say(warning)
        gaps = accept_gaps(pipeline, queries, probed, events, accepted=options.accept_gap)
        spark = spark or open_spark()
        stack.enter_context(page.spark(spark))
        require_executors(spark, pipeline, queries)
        if verbose:
            for setting in applied_settings():
                display.say(str(setting))
            for query in queries:
                for sentence in describe_small_batch(pipeline, query):
                    display.say(f"{query}: {sentence}")
        passed = None if known else passed_check.recall(loaded)
        if passed is None:
            display.step("checking the queries with Spark")
            events.emit("phase", text="checking the pipeline with Spark")
            checked = known or check(loaded, spark)
            exit_on_errors(_unprinted(checked, loaded), checked.texts)
            passed = PassedCheck(
                page.describe_check(checked), [promise.plain() for promise in checked.promises]
            )
            if known is None and not checked.findings:
                passed_check.remember(loaded, passed)
        page.show_check(passed.page)
        guarantees = [promise for promise in passed.guarantees if promise["query"] in queries]
        events.emit(
            "run_started", pipeline=pipeline.name, queries=queries, log=str(log), guarantees=guarantees
        )
        following: RunOptions | None = options
        while following is not None:

            def watch(supervisor: Supervisor) -> None:
                ending.watch(supervisor)
                supervisor.locate_sql = partial(_locate_sql, loaded)
                page.offer_actions(
                    ending.request, supervisor.restart, lambda text: events.emit("action", text=text)
                )

            succeeded = run_pipeline(
                spark, pipeline, following, events, probed, gaps=gaps, on_supervisor=watch
            )
            following, gaps = afterwards() if succeeded and not ending.is_requested else None, {}
        code = INTERRUPTED if ending.is_immediate else ending.exit_code
        events.emit("run_stopped", exit_code=code)
    return code


def _locate_sql(loaded: LoadedSpec, view: str, start: int, stop: int) -> str:
    """Return the file and line of characters of a view's SQL, as `check` prints them."""
    span = loaded.places.sql(view, start, stop)
    return f"{span.file}:{span.line}"


def _unprinted(checked: CheckResult, loaded: LoadedSpec) -> list[Finding]:
    """Return the findings that were not printed when the spec was loaded."""
    return [finding for finding in checked.findings if finding not in loaded.findings]


class _Ending:
    """Turns signals into requests to end. The first is graceful, the second immediate."""

    def __init__(self) -> None:
        self._supervisor: Supervisor | None = None
        self._signals = 0
        self._request = threading.Lock()
        self._before: Mapping[int, Any] = {}

    @property
    def is_requested(self) -> bool:
        """Whether a signal asked the run to end."""
        return self._signals > 0

    @property
    def is_immediate(self) -> bool:
        """Whether a second signal asked the run to end immediately."""
        return self._signals > 1

    @property
    def exit_code(self) -> int:
        """The exit code of the last supervisor."""
        return 0 if self._supervisor is None else self._supervisor.exit_code

    def watch(self, supervisor: Supervisor) -> None:
        """Send signals to this supervisor from now on."""
        self._supervisor = supervisor
        for _ in range(self._signals):
            supervisor.end()

    def request(self) -> None:
        """Ask for a graceful end, as the first Ctrl-C does, in the main thread. Called from other threads.

        Does nothing if an end has been requested: only a second signal makes the end immediate.
        """
        # Never released, because the main thread may not have handled the signal yet.
        if not self.is_requested and self._request.acquire(blocking=False):
            signal.raise_signal(signal.SIGTERM)

    def __enter__(self) -> _Ending:
        self._before = handle_ending(self._take)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _take(self, number: int, frame: object) -> None:  # noqa: ARG002 - a signal handler's signature
        self._signals += 1
        if self._supervisor is not None:
            self._supervisor.end()
        elif number == signal.SIGINT or self._signals > 1:
            raise KeyboardInterrupt
        else:
            raise SystemExit(0)


def _display(pipeline: Any, queries: list[str], log: Path, *, as_json: bool) -> Any:
    """Return JSON lines for programs, a live table on a terminal, or plain lines elsewhere."""
    from millstream.cli.run.run_output import JsonLines, PlainLines

    if as_json:
        return JsonLines()
    if sys.stderr.isatty():
        from millstream.cli.run.run_table import LiveTable

        return LiveTable(pipeline, queries, log)
    return PlainLines(log)


def _seconds(length: str | None) -> float | None:
    try:
        return None if length is None else Duration(length).seconds
    except ValueError as error:
        raise InvalidInput(str(error), "write it as 60s or '5 minutes'") from error
