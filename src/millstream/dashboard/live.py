"""The page of a run that goes on: opened before Spark starts, fed by the run's events, closed with it."""

from __future__ import annotations

import os
import time
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from millstream.analysis.telling import steps
from millstream.dashboard import moments
from millstream.dashboard.described import columns, described
from millstream.dashboard.engine import Engine
from millstream.dashboard.feed import Feed
from millstream.dashboard.fold import begun
from millstream.dashboard.hiding import Hiding
from millstream.dashboard.looking import Looking
from millstream.dashboard.metrics import Counts
from millstream.dashboard.page import LOCAL, serve
from millstream.dashboard.runlog import RunLog, forget, past, tail
from millstream.dashboard.telling import receivers
from millstream.dashboard.webhook import Webhook
from millstream.diagnostics.failure import MillstreamError, NotReady
from millstream.diagnostics.machine import plain
from millstream.runtime.events import Event
from millstream.runtime.gauges import Gauges

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    from millstream.dashboard.fold import Folded
    from millstream.pipeline.model import Pipeline
    from millstream.runtime.checking import Checked

# A run shows what happened before it, when that was not long ago: so many seconds, so many runs.
RECENT = 3600.0
BEFORE = 5


@dataclass(frozen=True)
class Wish:
    """Where the page is wanted: `port` is None for the usual one or the next that is free."""

    host: str = LOCAL
    port: int | None = None
    served: bool = True

    @property
    def asked(self) -> bool:
        """Was an address or a port named?"""
        return self.port is not None or self.host != LOCAL


@dataclass
class LivePage:
    """The feed of a run and, if it is wanted, its server. Closed at the end of the run."""

    pipeline: Pipeline
    queries: Sequence[str]
    wish: Wish
    address: str | None = None
    """Where the page is; None where it is not served."""
    refused: str = ""
    """Why it is not, where nobody asked for an address of his own: the run goes on without it."""
    notes: list[str] = field(default_factory=list)
    """Why a receiver of spans or lineage that is configured gets none."""
    _held: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> LivePage:
        started = time.time()
        run = f"{datetime.fromtimestamp(started, UTC):%Y%m%d-%H%M%S}-{os.getpid()}"
        runs = runs_of(self.pipeline)
        # What is kept of other runs is a convenience: a folder that cannot be read ends no run.
        with suppress(OSError):
            forget(runs)
        hiding = Hiding.of(self.pipeline)
        first = Event("described", data=described(self.pipeline, self.queries, run), at=moments.text(started))
        folded = begun(run, first.at, live=True)
        self.feed = Feed(folded, counts=Counts(), log=RunLog(runs / run), hiding=hiding)
        self.feed.outward = receivers(self.pipeline, run, os.environ, self.notes.append)
        self.feed.fold(first)
        with suppress(OSError):
            self.feed.remember(reversed(list(earlier(runs, self.pipeline.name, started, run))))
        self.feed.start()
        with self._held as held:
            for one in self.feed.outward:
                held.callback(one.close)
            held.callback(self.feed.close)
            if self.pipeline.alerts_to is not None:
                webhook = Webhook(self.pipeline.alerts_to.reveal(), self.pipeline.name)
                held.callback(webhook.close)
                self.feed.on_alerts = webhook.take
            if self.wish.served:
                self._serve(held, hiding)
            self._held = held.pop_all()
        return self

    def _serve(self, held: ExitStack, hiding: Hiding) -> None:
        looking = Looking(self.pipeline, hiding)
        held.callback(looking.close)
        try:
            page = serve(self.feed, looking, host=self.wish.host, port=self.wish.port)
        except NotReady as why:
            if self.wish.asked:
                raise
            self.refused = why.what
            return
        held.callback(page.close)
        # The last said first: readers hear of the end before nobody answers any more.
        held.callback(self.feed.close)
        self.address = page.address

    def __exit__(self, kind: object, raised: BaseException | None, trace: object) -> None:
        if raised is not None:
            self.feed.ended_by = code_of(raised)
        self._held.close()

    @contextmanager
    def spark(self, spark: SparkSession) -> Iterator[None]:
        """Tell the metrics of a session while this is held, which is to end before the session does."""
        engine = Engine(Gauges(spark).read)
        self.feed.engine = engine
        try:
            yield
        finally:
            self.feed.engine = None
            engine.close()

    def checked(self, checked: Checked) -> None:
        """Show what a check has found and what the queries do."""
        found: dict[str, Any] = {
            "findings": [plain(one) for one in checked.findings],
            "plans": [
                {"query": query.name, "steps": [step.text for step in steps(query)]}
                for query in checked.queries
            ],
            "columns": columns(self.pipeline, checked),
        }
        self.feed.take(Event("checked", data=found))


def code_of(raised: BaseException) -> int:
    """The exit code of a process that ends by an exception."""
    match raised:
        case SystemExit():
            return raised.code if isinstance(raised.code, int) else int(raised.code is not None)
        case KeyboardInterrupt():
            return 130
        case MillstreamError():
            return raised.exit_code
    return 70


def runs_of(pipeline: Pipeline) -> Path:
    """The folder that holds a folder for each run of a project."""
    return pipeline.folder / ".millstream" / "runs"


def earlier(
    runs: Path, pipeline: str, now: float, this: str
) -> Iterator[tuple[Folded, list[dict[str, Any]]]]:
    """Recent runs of the same pipeline with the entries of their streams, the latest first."""
    found = [run for run in past(runs) if run.id != this and run.pipeline == pipeline]
    for run in found[:BEFORE]:
        folded, entries = begun(run.id, run.started, live=False), []
        try:
            for number, event in tail(run.folder):
                entry, dot = folded.take(event, number)
                if event.event == "totals":
                    # No event of the run: nobody who follows its stream has seen it.
                    continue
                entries.append({**entry, "point": dot})
        except (OSError, ValueError, KeyError, EOFError):
            # A log that a crash has torn, or of another version: what comes before it is of no use either.
            return
        if not entries or now - moments.seconds(str(entries[-1]["at"])) > RECENT:
            return
        yield folded, entries
