"""Serve the live page of a run: open it before Spark starts, feed it with events, close it with the run."""

from __future__ import annotations

import os
import time
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from millstream.analysis.explain.operator_names import name_operators
from millstream.analysis.explain.plan_steps import list_steps
from millstream.checkpoint.private_folder import make_private
from millstream.dashboard.end_offset_poll import EndOffsetPoll, watched_sources
from millstream.dashboard.export.alert_webhook import Webhook
from millstream.dashboard.export.configure import configure_exporters
from millstream.dashboard.export.prometheus import EventCounters
from millstream.dashboard.export.spark_metrics import Engine
from millstream.dashboard.http.app import LOCAL, serve
from millstream.dashboard.http.data_preview import DataPreviews
from millstream.dashboard.http.event_stream import EventStream
from millstream.dashboard.run_actions import NAMES, RunActions
from millstream.dashboard.run_log import RunLog, delete_old_runs, list_runs, read_last_events
from millstream.dashboard.state import timestamps
from millstream.dashboard.state.pipeline_info import describe_pipeline, known_columns
from millstream.dashboard.state.run_state import new_run_state
from millstream.diagnostics.failure import MillstreamError, NotReady
from millstream.diagnostics.formats import finding_to_json
from millstream.engine.events.event_bus import Event
from millstream.engine.open_files_watch import watch_files
from millstream.pipeline.graph import PipelineGraph
from millstream.spark.jvm_metrics import Gauges
from millstream.state.state_sample import sample_query

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    from millstream.analysis.query.plan_model import PlannedQuery
    from millstream.checking.check import CheckResult
    from millstream.dashboard.state.run_state import RunState
    from millstream.pipeline.model import Pipeline

# A run also shows earlier runs: those of the last hour (in seconds), and at most this many.
RECENT = 3600.0
BEFORE = 5


@dataclass(frozen=True)
class PageOptions:
    """The address of the page. `port` is None for the default port or the next free one."""

    host: str = LOCAL
    port: int | None = None
    is_served: bool = True
    is_recorded: bool = True
    """Whether the run gets a folder among the runs of the project, and alerts, spans and lineage are sent."""

    @property
    def is_address_set(self) -> bool:
        """Whether an address or a port was requested."""
        return self.port is not None or self.host != LOCAL


@dataclass
class LivePage:
    """The event stream of a run and, unless turned off, its server. Closed at the end of the run."""

    pipeline: Pipeline
    queries: Sequence[str]
    options: PageOptions
    address: str | None = None
    """The address of the page with its token, or None if it is not served."""
    origin: str | None = None
    """The address without the token, for programs of the same user."""
    reason_not_served: str = ""
    """Why the page is not served. Set only if no address was requested; the run continues without the page."""
    notes: list[str] = field(default_factory=list)
    """Why a configured receiver of spans or lineage gets none."""
    _resources: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> LivePage:
        started = time.time()
        run = f"{datetime.fromtimestamp(started, UTC):%Y%m%d-%H%M%S}-{os.getpid()}"
        runs = runs_folder(self.pipeline) if self.options.is_recorded else None
        if runs is not None:
            # The logs of other runs are optional, so an unreadable folder must not end this run.
            with suppress(OSError):
                make_private(runs)
                delete_old_runs(runs)
        first = Event(
            "described",
            data=describe_pipeline(self.pipeline, self.queries, run),
            at=timestamps.format_timestamp(started),
        )
        folded = new_run_state(run, first.at, live=True)
        log = None if runs is None else RunLog(runs / run)
        self.feed = EventStream(folded, counts=EventCounters(), log=log)
        if runs is not None:
            self.feed.outward = configure_exporters(self.pipeline, run, os.environ, self.notes.append)
        self.feed.fold(first)
        if runs is not None:
            with suppress(OSError):
                self.feed.remember(reversed(list(recent_runs(runs, self.pipeline.name, started, run))))
        self.feed.start()
        with self._resources as stack:
            for exporter in self.feed.outward:
                stack.callback(exporter.close)
            # Callbacks run in reverse order: the feed passes the last state to the webhook before that is closed.
            webhooks = stack.enter_context(ExitStack())
            stack.callback(self.feed.close)
            if self.options.is_recorded and self.pipeline.alerts_to is not None:
                webhook = Webhook(self.pipeline.alerts_to.reveal(), self.pipeline.name)
                webhooks.callback(webhook.close)
                self.feed.on_state = webhook.take
            if self.options.is_served:
                self._serve(stack)
            if self.options.is_served or self.pipeline.alerts:
                self._poll_end_offsets(stack)
            self._resources = stack.pop_all()
        return self

    def _poll_end_offsets(self, stack: ExitStack) -> None:
        graph = PipelineGraph.of(self.pipeline)
        names = dict.fromkeys(source for query in self.queries for source in graph.sources_of(query))
        poll = EndOffsetPoll(watched_sources(self.pipeline, names), self.feed)
        stack.callback(poll.close)
        poll.start()

    def _serve(self, stack: ExitStack) -> None:
        preview = DataPreviews(self.pipeline, sample_query)
        stack.callback(preview.close)
        try:
            page = serve(self.feed, preview, host=self.options.host, port=self.options.port)
        except NotReady as failure:
            if self.options.is_address_set:
                raise
            self.reason_not_served = failure.what
            return
        stack.callback(page.close)
        # Readers are notified of the end before the server stops.
        stack.callback(self.feed.close)
        self.address, self.origin = page.address, page.origin

    def __exit__(self, kind: object, raised: BaseException | None, trace: object) -> None:
        if raised is not None:
            self.feed.ended_by = exit_code_of(raised)
        self._resources.close()

    @contextmanager
    def spark(self, spark: SparkSession) -> Iterator[None]:
        """Serve the metrics and open files of a session inside this context, which must end before the session."""
        engine = Engine(Gauges(spark).read)
        self.feed.engine = engine
        self.feed.folded.read_open_files = watch_files(spark, self.pipeline, self.queries)
        try:
            yield
        finally:
            self.feed.engine, self.feed.folded.read_open_files = None, tuple
            engine.close()

    def offer_actions(
        self, end: Callable[[], None], restart: Callable[[str], None], report: Callable[[str], None]
    ) -> None:
        """Let the page ask the run to end, to restart a query and to deliver dead letters again.

        `report` receives a sentence on each action that was requested.
        """
        self.feed.actions = RunActions(self.pipeline, end, restart, report)
        self.feed.folded.actions = NAMES

    def describe_check(self, checked: CheckResult) -> dict[str, Any]:
        """Return what the page shows of a check: its findings, and the steps and columns of the queries."""
        return {
            "findings": [finding_to_json(finding) for finding in checked.findings],
            "plans": [describe_plan(query) for query in checked.queries],
            "columns": known_columns(self.pipeline, checked),
        }

    def show_check(self, data: dict[str, Any]) -> None:
        """Show a check as `describe_check` describes it, possibly in an earlier run."""
        self.feed.take(Event("checked", data=data))


def describe_plan(query: PlannedQuery) -> dict[str, Any]:
    """Return the operators of a query by their names, and its steps in sentences."""
    steps = list_steps(query)
    operators = [
        {"name": named.name, "text": named.text, "times": named.times, "state": named.has_state}
        for named in name_operators(steps)
    ]
    return {"query": query.name, "steps": [step.text for step in steps], "operators": operators}


def exit_code_of(raised: BaseException) -> int:
    """Return the exit code of a process that ends with an exception."""
    match raised:
        case SystemExit():
            return raised.code if isinstance(raised.code, int) else int(raised.code is not None)
        case KeyboardInterrupt():
            return 130
        case MillstreamError():
            return raised.exit_code
    return 70


def runs_folder(pipeline: Pipeline) -> Path:
    """Return the folder that contains a folder for each run of a project."""
    return pipeline.folder / ".millstream" / "runs"


def recent_runs(
    runs: Path, pipeline: str, now: float, this: str
) -> Iterator[tuple[RunState, list[dict[str, Any]]]]:
    """Yield recent runs of the same pipeline with the entries of their streams, latest first."""
    candidates = [run for run in list_runs(runs) if run.id != this and run.pipeline == pipeline]
    for run in candidates[:BEFORE]:
        folded, entries = new_run_state(run.id, run.started, live=False), []
        try:
            for number, event in read_last_events(run.folder):
                entry, dot = folded.take(event, number)
                if event.event == "totals":
                    # Only the log has this event; the stream of the run did not.
                    continue
                entries.append({**entry, "point": dot})
        except (OSError, ValueError, KeyError, EOFError):
            # A truncated log, or one of another version. Earlier runs are useless too, so stop.
            return
        if not entries or now - timestamps.parse(str(entries[-1]["at"])) > RECENT:
            return
        yield folded, entries
