"""A small pipeline over a folder of JSON files, run in the session of the tests."""

from __future__ import annotations

import json
import os
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from delta_tables import read_parquet_rows, read_rows
from millstream.engine.events.event_bus import Event, EventBus
from millstream.engine.run import RunOptions, run_pipeline
from millstream.pipeline.model import Pipeline
from millstream.spark.internals import scala_object

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

Made = dict[str, Any]
# Seconds since 1970.
_LONG_AGO = 1_767_225_600
ORDERS = "id string, amount int, at timestamp"


class Project:
    """A pipeline's folder: put input in, run it, see what was told."""

    def __init__(self, folder: Path, spark: SparkSession) -> None:
        self.folder = folder
        self.spark = spark
        self.events: list[Event] = []
        (folder / "in").mkdir()
        self._files = 0

    def add_lines(self, *lines: object) -> None:
        """One more input file: objects as JSON, texts as they are."""
        self._files += 1
        half = self.folder / f"half-{self._files}"
        half.write_text("".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines))
        # Spark reads the oldest first; files of one millisecond have no order.
        os.utime(half, (_LONG_AGO + self._files,) * 2)
        half.rename(self.folder / "in" / f"{self._files:03}.json")

    def pipeline(self, **changes: Any) -> Pipeline:
        """`orders` from the folder, summed by ten minutes into Delta and copied into Parquet and Delta."""
        spec: Made = {
            "name": "shop",
            "defaults": {"retry": {"first": "10 ms", "give_up_after": "1 minute"}},
            "sources": {
                "orders": {
                    "json": {"path": str(self.folder / "in"), "max_files_per_trigger": 1},
                    "schema": {"id": "string", "amount": "int", "at": "timestamp"},
                    "watermark": {"event_time": "at", "delay_threshold": "10 minutes"},
                    "on_malformed": "dead_letter",
                }
            },
            "views": {
                "sums": {
                    "sql": "SELECT window.start AS since, sum(amount) AS amount FROM orders "
                    "GROUP BY window(at, '10 minutes')"
                }
            },
            "queries": {
                "sums": {
                    "output_mode": "update",
                    "to": [{"delta": {"path": str(self.folder / "sums"), "merge_on": ["since"]}}],
                },
                "copy": {
                    "from": "orders",
                    "to": [{"parquet": str(self.folder / "files")}, {"delta": str(self.folder / "table")}],
                },
            },
            "folder": self.folder,
        }
        return Pipeline.model_validate({**spec, **changes}, context={"folder": self.folder})

    def run(
        self, pipeline: Pipeline, options: RunOptions | None = None, on_event: Callable[[Event], None] = print
    ) -> bool:
        """Run it until it is caught up, or as `options` say; events are kept in `events`."""
        events = EventBus()
        events.listen(self.events.append)
        events.listen(on_event)
        try:
            return run_pipeline(self.spark, pipeline, options or RunOptions(until_caught_up=True), events, {})
        finally:
            events.close()

    def list_events(self, event: str) -> list[Event]:
        """The events of that name."""
        return [item for item in self.events if item.event == event]

    def rows(self, name: str, form: str = "delta") -> list[tuple[Any, ...]]:
        """What a sink holds, in order."""
        read = {"delta": read_rows, "parquet": read_parquet_rows}[form]
        return sorted(read(self.folder / name))

    def numbers(self, query: str, log: str) -> list[int]:
        """The batches in a log of a query's checkpoint."""
        folder = self.folder / ".millstream" / "checkpoints" / query / log
        return sorted(int(file.name) for file in folder.iterdir() if file.name.isdigit())

    def forget_last_commit(self, query: str) -> None:
        """Leave the checkpoint as a crash between the sinks and Spark's commit would."""
        last = self.numbers(query, "commits")[-1]
        folder = self.folder / ".millstream" / "checkpoints" / query / "commits"
        (folder / str(last)).unlink()
        (folder / f".{last}.crc").unlink(missing_ok=True)

    def keep(self) -> None:
        """Keep a copy of the folder as it is, to come back to."""
        shutil.copytree(self.folder, self._copy)

    def restore(self) -> None:
        """Make the folder what it was: a copy in the same place, as checkpoints name files by their whole path."""
        shutil.rmtree(self.folder)
        shutil.copytree(self._copy, self.folder)
        self.events.clear()
        scala_object(self.spark, "org.apache.spark.sql.delta.DeltaLog").clearCache()

    @property
    def _copy(self) -> Path:
        return self.folder.with_name(f"{self.folder.name}-kept")


@pytest.fixture(scope="session")
def prepared(
    tmp_path_factory: pytest.TempPathFactory, spark: SparkSession
) -> Callable[[str, Callable[[Project], object]], Project]:
    """Projects that were brought somewhere once, by name; each call puts the folder back to that."""
    projects: dict[str, Project] = {}

    def prepare(name: str, steps: Callable[[Project], object]) -> Project:
        if name in projects:
            projects[name].restore()
        else:
            project = Project(tmp_path_factory.mktemp("prepared"), spark)
            steps(project)
            project.events.clear()
            project.keep()
            projects[name] = project
        return projects[name]

    return prepare


@pytest.fixture
def project(tmp_path: Path, spark: SparkSession) -> Iterator[Project]:
    """A fresh project."""
    yield Project(tmp_path, spark)
    for stream in spark.streams.active:
        stream.stop()
