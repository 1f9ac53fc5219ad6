"""Watch the open files of a run: warn before none is left, and end the run before it would hang."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.diagnostics.failure import RESTART
from millstream.pipeline.graph import PipelineGraph
from millstream.spark import internals
from millstream.spark.resources import open_files_reader
from millstream.spark.settings import is_local

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import SparkSession

    from millstream.engine.events.event_bus import EventBus
    from millstream.pipeline.model import Pipeline
    from millstream.spark.resources import OpenFiles, OpenFilesReader

# Seconds between two looks. One takes 0.4 ms for a thousand open files, and 16 ms for 19,000.
EVERY = 5.0
# Seconds between two looks once a warning is given.
OFTEN = 1.0
# Shares of the limit: from the first on a warning is given, and anew only after the share was below the second.
WARNING, FORGOTTEN = 0.8, 0.7
# At this share the run ends, or earlier if the rest is less than the sockets of so many batches: one that a look has
# missed, one in progress, and one that begins before it is asked to end.
END, BATCHES = 0.95, 3
_LEAK = (
    "Spark 4.2.0 leaves a socket open for each partition of each batch of a Python processor (SPARK-58932), "
    "until the process ends"
)
_NAMES = {"jvm": "Spark's JVM", "python": "Millstream's Python process"}


def watch_files(spark: SparkSession, pipeline: Pipeline, queries: Sequence[str]) -> OpenFilesReader:
    """Return a reader of the open files of this run, which knows whether sockets stay open in the JVM.

    On a cluster they do so in the executors, which are not read.
    """
    graph = PipelineGraph.of(pipeline)
    views = [pipeline.views[view] for query in queries for view in graph.views(query)]
    processors = sum(view.transform_with_state is not None for view in views)
    has_leak = processors and spark.version == "4.2.0" and is_local(str(spark.sparkContext.master))
    reserve = BATCHES * processors * int(spark.conf.get("spark.sql.shuffle.partitions") or 0)
    # The JVM may be no child of this process: that of spark-submit is its parent.
    jvm = str(internals.java_class(spark, "java.io.File")("/proc/self").getCanonicalPath())
    return open_files_reader(Path(jvm).name, _LEAK if has_leak else "", reserve)


def describe(files: OpenFiles) -> str:
    """Return the number of open files in a sentence."""
    return f"{_NAMES[files.process]} has {files.open:,} of at most {files.max:,} files and sockets open"


def last_count(files: OpenFiles) -> int:
    """Return the number of open files at which a run with a leak ends."""
    return min(int(END * files.max), files.max - files.reserve)


def explain(files: OpenFiles) -> tuple[str, str]:
    """Return why a process has many open files, which may be empty, and what to do."""
    fix = "raise the limit of open files (ulimit -n, LimitNOFILE), or restart the run, which resumes with its state"
    if files.leak:
        fix = (
            f"restart the run, which resumes with its state; with {last_count(files):,} open it ends by itself with "
            f"exit code {RESTART}. A higher limit of open files (ulimit -n, LimitNOFILE) and fewer "
            "spark.sql.shuffle.partitions let it run longer"
        )
    return files.leak, fix


class OpenFilesWatch:
    """Warns once when a process has many open files, and again after it had few."""

    def __init__(
        self, read: OpenFilesReader, events: EventBus, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._read, self._events, self._clock = read, events, clock
        self._next_look = clock()
        self._warned: set[str] = set()
        self._first_count: dict[str, int] = {}

    def must_end(self) -> bool:
        """Look, unless that was a moment ago. Return whether the run must end, because it would hang soon.

        That is certain only with a known leak. A process that has many open files from its start would have as many
        after a restart, so it does not end for them.
        """
        if self._clock() < self._next_look:
            return False
        counts = self._read()
        self._next_look = self._clock() + (
            OFTEN if any(files.share >= WARNING for files in counts) else EVERY
        )
        return any(self._is_at_end(files) for files in counts)

    def _is_at_end(self, files: OpenFiles) -> bool:
        first_count = self._first_count.setdefault(files.process, files.open)
        cause, fix = explain(files)
        if files.share < FORGOTTEN:
            self._warned.discard(files.process)
        elif files.share >= WARNING and files.process not in self._warned:
            self._warned.add(files.process)
            self._warn(files, cause, fix)
        if (
            not files.leak
            or files.open < last_count(files)
            or first_count >= min(last_count(files), WARNING * files.max)
        ):
            return False
        fix = "start it again, as a service manager does; it resumes with its state"
        self._warn(files, f"{cause}; the run ends before none is left", fix)
        return True

    def _warn(self, files: OpenFiles, cause: str, fix: str) -> None:
        what = "; ".join(filter(None, (describe(files), cause)))
        self._events.emit(
            "warning",
            what=what,
            fix=fix,
            process=files.process,
            open_files=files.open,
            max_open_files=files.max,
        )
