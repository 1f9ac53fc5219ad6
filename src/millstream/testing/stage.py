"""The stage that one case is played on: its session, its sources, its query, and what came of each step."""

from __future__ import annotations

import secrets
import time
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Self

from pyspark.errors import PySparkException

from millstream.checkpoint.folder import Checkpoint
from millstream.diagnostics.failure import MillstreamError, WrongUse
from millstream.runtime.events import Events
from millstream.runtime.failures import Cause, classify
from millstream.spec.trigger import Trigger
from millstream.testing.case import Played, Step
from millstream.testing.collecting import Collected
from millstream.testing.feeding import Feeder
from millstream.testing.letters import Letterbox
from millstream.testing.lines import Lines, part
from millstream.testing.moved import Moved, moved
from millstream.testing.session import case_session, settings_of_later
from millstream.testing.shelf import Shelf
from millstream.testing.side import Side
from millstream.testing.strand import LIMIT, Strand
from millstream.testing.tested import OUTPUT, Doom, TestedQuery

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    from millstream.pipeline.model import Pipeline
    from millstream.runtime.failures import Failure
    from millstream.testing.case import Case, Fed, Row
    from millstream.testing.strand import Progress

# A time that no one meets by chance, for cases that do not say what the clock says.
_SOMEDAY = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class Stage:
    """Plays one case, a call at a time; a context manager.

    `folder` is the case's own: its checkpoint, its dead letters and its files go there. `watched` are views and
    sources whose rows are wanted beside those that the case's steps expect; a name must be known before the first
    row is fed. What the query says as it dies is in `Played.error`; what cannot be played raises `MillstreamError`.
    """

    spark: SparkSession
    case: Case
    folder: Path
    watched: Collection[str] = ()
    limit: float = LIMIT

    def __enter__(self) -> Self:
        self._held = ExitStack()
        try:
            self._open()
        except BaseException:
            self._held.close()
            raise
        return self

    def _open(self) -> None:
        self.session = self._held.enter_context(case_session(self.spark, self.case.pipeline))
        self._held.callback(lambda: self._shelf.discard())
        self._held.callback(self._stop)
        self._events = Events()
        self._held.callback(self._events.close)
        self._prefix = f"case_{secrets.token_hex(4)}"
        self._lines = Lines(self.session)
        self._tested: Pipeline | None = None
        self._shelf = Shelf(self.session, self.case.pipeline.queries[self.case.query].output_mode)
        self._begin()

    def _begin(self) -> None:
        """Have everything as it is before the first step."""
        case = self.case
        now = case.now or _SOMEDAY
        self._feeders: dict[str, Feeder] = {}
        self._strand = Strand(self.session, case.query, _millis(now), self.limit)
        self._doom = Doom()
        self._query: TestedQuery | None = None
        self._frame: Any = None
        self._error: Failure | None = None
        self._new: list[Progress] = []
        self._state: dict[str, int] = {}
        self._mark: int = 0
        self._pending = False
        self._since = time.perf_counter()
        self._to(case.pipeline)
        mode = self._moved.pipeline.queries[case.query].output_mode
        self._collected = {key: Collected(mode) for key in (OUTPUT, *self._moved.collecting)}
        self._letters = Letterbox(self._moved.pipeline)
        names = [name for step in case.steps for name in step.expected.rows]
        self._wanted = list(dict.fromkeys([*names, *self.watched]))
        self._sides = {
            name: Side(self.session, name, case, self.folder, self.limit)
            for name in self._wanted
            if name != self._written and (name in case.pipeline.views or name in case.pipeline.sources)
        }

    def __exit__(self, *_: object) -> None:
        self._held.close()

    def fits(self, case: Case) -> bool:
        """Can that case be played here too, with the sources and views that are made already?"""
        mine = self.case
        same = (case.query, case.real, case.now) == (mine.query, mine.real, mine.now)
        return same and case.static == mine.static and case.pipeline is mine.pipeline is self._version

    def rest(self) -> None:
        """End the run, as after the last step; the stage may be played on again."""
        self._stop()

    def again(self, case: Case, folder: Path) -> None:
        """Play a case that `fits` from its beginning, in a folder of its own.

        What was fed, state and checkpoint are left behind; session, sources and views stay as they were made.
        """
        self.rest()
        self._lines.reset()
        self.case, self.folder = case, folder
        frame, tested = self._frame, self._tested
        self._begin()
        if frame is not None and tested is not None:
            self._frame = frame
            self._tested = part(self._moved.pipeline, self._written).model_copy(
                update={"sources": tested.sources}
            )

    def feed(self, rows: Mapping[str, Sequence[Fed]], crash: str | None = None) -> None:
        """Let these rows arrive, of all sources at once, and play the batch that reads them.

        With `crash` the run dies in that batch at that point (`before_sink`, `after_sink`, a sink's name), starts
        again, and Spark repeats the batch. A batch without data that follows a moved watermark is played too.
        """
        at = self._point(crash) if crash else None
        pipeline = self._moved.pipeline
        raw = {name: self._raw(name, given, pipeline) for name, given in rows.items()}
        self._lines.add(raw)
        for side in self._sides.values():
            side.lines.add(raw)
        self._doom.at, self._doom.done = at, False
        self._batch()
        if at is not None and not self._doom.done and self._error is None:
            raise WrongUse(
                f"there was no batch in which the run could die at {crash}", "feed rows that the query reads"
            )
        self._sided()

    def crash(self, at: str) -> None:
        """Let the run die in the newest batch at that point, as if Spark had not committed it, and repeat it.

        What sinks have of the batch they keep: a run that died between a sink's write and Spark's commit.
        """
        point = self._point(at)
        self._ready()
        self._halt()
        checkpoint = Checkpoint(self._checkpoint)
        last = checkpoint.committed()
        if last is None:
            raise WrongUse("there is no batch yet that could be repeated", "feed something before the crash")
        for file in (self._checkpoint / "commits").glob(f"*{last}*"):
            if file.name in (str(last), f".{last}.crc"):
                file.unlink()
        self._doom.at, self._doom.done = point, False
        self._batch()
        self._doom.at = None

    def restart(self, pipeline: Pipeline | None = None) -> None:
        """End the run between two batches and start it again, with another pipeline where one is given."""
        if pipeline is not None:
            self._ready()
        self._halt()
        self._error = None
        if pipeline is not None:
            settings_of_later(self.session, self._moved.pipeline, pipeline)
            self._to(pipeline)
            for key in self._moved.collecting:
                self._collected.setdefault(key, Collected(pipeline.queries[self.case.query].output_mode))
            for side in self._sides.values():
                side.restart(pipeline)
        self._pending = True

    def advance(self, by: timedelta) -> None:
        """Let the clock go on; the next batch is of that time, and time-outs that are due fire in it."""
        for strand in (self._strand, *(side.strand for side in self._sides.values())):
            strand.now += round(by / timedelta(milliseconds=1))
        self._pending = True

    def played(self, step: Step) -> Played:
        """What came since the last call; whatever still has to happen, such as a start, happens first."""
        if self._pending:
            self._batch()
            self._sided()
        self._pending = False
        new, self._new = self._new, []
        rows = {name: self._rows(name) for name in dict.fromkeys([OUTPUT, *self._wanted])}
        operators = [one for report in new for one in report.report["stateOperators"]]
        if new:
            self._state = _states(new[-1].report["stateOperators"])
        since, self._since = self._since, time.perf_counter()
        error, self._error = self._error, None
        return Played(
            step=step,
            batches=tuple(dict.fromkeys(report.batch for report in new)),
            watermark=datetime.fromtimestamp(self._mark / 1000, UTC) if self._mark else None,
            rows=rows,
            dropped=sum(one.get("numRowsDroppedByWatermark", 0) for one in operators),
            state=dict(self._state),
            letters=self._letters.take(),
            error=None if error is None else error.message,
            broke=error is not None and error.cause in (Cause.OUTAGE, Cause.CRASH),
            seconds=self._since - since,
        )

    def _to(self, pipeline: Pipeline) -> None:
        """Take that pipeline from the next start on."""
        self._moved: Moved = moved(pipeline, self.case.query, self.folder, self._prefix, real=self.case.real)
        for key, sink in self._moved.real():
            self._shelf.seen(key, sink)
            sink.prepare()
        self._version = pipeline
        self._frame = None
        self._tested = None

    @property
    def _written(self) -> str:
        return self.case.pipeline.reads(self.case.query)

    @property
    def _checkpoint(self) -> Path:
        folder = self._moved.pipeline.checkpoint(self.case.query).local
        assert folder is not None, "moved below a folder of this machine"
        return folder

    def _raw(self, name: str, fed: Sequence[Fed], pipeline: Pipeline) -> list[str]:
        entry = pipeline.sources.get(name)
        if entry is None or entry.static:
            streams = [one for one, other in pipeline.sources.items() if not other.static]
            raise WrongUse(f"'{name}' is no streaming source", f"choose among {', '.join(streams)}")
        feeder = self._feeders.setdefault(name, Feeder(name))
        return feeder.raw(entry, fed, datetime.fromtimestamp(self._strand.now / 1000, UTC))

    def _point(self, at: str) -> str:
        if at in ("before_sink", "after_sink"):
            return at
        key = self._moved.key(at)
        if key is None:
            raise WrongUse(
                f"query '{self.case.query}' has no sink '{at}' at which it could die",
                f"choose among before_sink, after_sink, {', '.join(self._moved.keys)}",
            )
        return key

    def _ready(self) -> None:
        """Have the query running, or its error noted."""
        if not self._strand.alive:
            self._rise()

    def _batch(self) -> None:
        """One batch of the query; a run that dies on purpose starts again and repeats it."""
        self._pending = False
        self._step()
        if self._doom.done and not self._strand.alive:
            self._doom.done = False
            self._error = None
            self._step()
            self._doom.done = True
        if self._strand.alive:
            self._new += self._strand.follow(self._new[-1] if self._new else None)
            self._note()

    def _step(self) -> None:
        if self._strand.alive:
            self._strand.trigger()
            self._note()
        else:
            self._rise()

    def _rise(self) -> None:
        """Start the query; its first trigger takes what is there. What refuses it is the step's error."""
        self._halt()
        case = self.case
        try:
            if self._frame is None:
                now = datetime.fromtimestamp(self._strand.now / 1000, UTC)
                written = self._moved.pipeline.reads(case.query)
                needed = part(self._moved.pipeline, written)
                self._tested, frames = self._lines.frames(needed, case.static, now)
                self._frame = frames[written]
            assert self._tested is not None
            self._query = TestedQuery(
                spark=self.session,
                pipeline=self._tested,
                name=case.query,
                frame=self._frame,
                trigger=Trigger(),
                events=self._events,
                strand=self._strand,
                collected=self._collected,
                doom=self._doom,
            )
            self._query.start()
        except (MillstreamError, PySparkException) as refused:
            self._error = classify(None, refused)
            self._halt()
            return
        self._strand.settle()
        self._note()

    def _note(self) -> None:
        """Take in what the query reports."""
        self._new += self._strand.reports()
        if self._strand.alive:
            self._mark = self._strand.watermark()
        elif self._query is not None:
            raised = self._query.delivery.failure if self._query.delivery else None
            self._error = classify(self._strand.error, raised)

    def _halt(self) -> None:
        """End the run, if there is one."""
        self._strand.stop()
        if self._query is not None:
            self._query.close()
            self._query = None

    def _sided(self) -> None:
        for side in self._sides.values():
            side.batch()

    def _rows(self, name: str) -> tuple[Row, ...]:
        """What came in this step by that name."""
        if name == OUTPUT:
            self._output = self._collected[OUTPUT].take()
            return self._output
        if name == self._written:
            return self._output
        if name in self._sides:
            return self._sides[name].collected.take()
        key = self._moved.key(name)
        if key is None:
            raise WrongUse(
                f"'{name}' is no source, view or sink of query '{self.case.query}'",
                f"choose among {', '.join([*self.case.pipeline.sources, *self.case.pipeline.views])}, "
                f"{', '.join(self._moved.keys)}",
            )
        if key in self._collected:
            return self._collected[key].take()
        return self._shelf.take(key, dict(self._moved.real())[key], self._frame.schema)

    def _stop(self) -> None:
        for side in getattr(self, "_sides", {}).values():
            side.strand.stop()
        self._halt()


def _states(operators: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Rows in state by the operator's name, added up over operators of one name."""
    found: dict[str, int] = {}
    for one in operators:
        found[one["operatorName"]] = found.get(one["operatorName"], 0) + one["numRowsTotal"]
    return found


def _millis(at: datetime) -> int:
    """Milliseconds since 1970; UTC where no zone is told."""
    aware = at if at.tzinfo else at.replace(tzinfo=UTC)
    return round(aware.timestamp() * 1000)
