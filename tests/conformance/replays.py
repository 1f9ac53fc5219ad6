"""Pipelines in which every kind of sink, in every mode, is the only sink of a query; all run in one session."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from conformance.targets import DELETING, Case, Place, Row, Target, cases
from millstream.connectors.api.cdc import Cdc
from millstream.engine.events.event_bus import Event, EventBus
from millstream.engine.run import RunOptions, run_pipeline
from millstream.pipeline.model import Pipeline
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from pathlib import Path

    import pytest
    from pyspark.sql import SparkSession


# Seconds since 1970.
_LONG_AGO = 1_767_225_600
CDC = Cdc(keys=("k",), sequence_by="v", apply_as_deletes="v = 'gone'", stored_as_scd_type=2)


@dataclass(frozen=True)
class Way:
    """A case with settings of its own: a layout, folders, rows that remove others, changes."""

    case: Case
    settings: tuple[tuple[str, Any], ...] = ()

    def __str__(self) -> str:
        return "-".join([str(self.case), *(name for name, _ in self.settings)])

    @property
    def query(self) -> str:
        """A name that a query may have."""
        return str(self).replace("-", "_")


def ways() -> list[Way]:
    """Every kind of the registry in every mode, and in the variants whose guards differ."""
    actual = [Way(case) for case in cases()]
    for case in cases():
        if case.keyed and case.kind in DELETING:
            actual.append(Way(case, (("delete_when", "v = 'gone'"),)))
        if case.keyed and case.kind in DELETING and case.mode is OutputMode.APPEND:
            actual.append(Way(case, (("cdc", CDC), ("merge_on", ()))))
        if case.kind == "kafka":
            actual.append(Way(case, (("transactional", True),)))
        if case.kind == "parquet" and case.mode is OutputMode.APPEND:
            actual.append(Way(case, (("layout", "by_batch"),)))
            actual.append(Way(case, (("partition_by", ("k",)),)))
    return actual


@dataclass
class Shop:
    """The pipeline of one mode: a query a way, over one folder of JSON files."""

    folder: Path
    spark: SparkSession
    mode: OutputMode
    request: pytest.FixtureRequest
    chosen: tuple[Way, ...] = ()
    """The ways that are tried; all of the mode unless given."""
    targets: dict[str, Target] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)

    def pipeline(self) -> Pipeline:
        """In update and complete mode the greatest value of each key, else the rows as they come."""
        rows = "SELECT k, v FROM lines"
        if self.mode is not OutputMode.APPEND:
            rows = "SELECT k, max(v) AS v FROM lines GROUP BY k"
        local = [way for way in self.chosen or ways() if way.case.mode is self.mode]
        views = {
            "rows": {"sql": rows},
            # A text file has one column: a row travels in it as JSON.
            "texts": {"sql": "SELECT to_json(struct(k, v)) AS value FROM rows"},
        }
        queries: dict[str, Any] = {
            way.query: {
                "from": "texts" if way.case.kind == "text" else "rows",
                "output_mode": self.mode.value,
                "to": {"memory": way.query},
            }
            for way in local
        }
        spec = {
            "name": "shop",
            "sources": {
                "lines": {
                    "json": {"path": str(self.folder / "in"), "max_files_per_trigger": 1},
                    "schema": {"k": "string", "v": "string"},
                }
            },
            "views": views,
            "queries": queries,
            "folder": self.folder,
        }
        result = Pipeline.model_validate(spec, context={"folder": self.folder})
        for way in local:
            query = result.queries[way.query]
            entry = query.to[0].model_copy(update={"sink": self._target(way).sink})
            result.queries[way.query] = query.model_copy(update={"to": (entry,)})
        return result

    def _target(self, way: Way) -> Target:
        if way.query not in self.targets:
            folder = self.folder / way.query
            folder.mkdir()
            target = way.case.target(Place(folder, self.spark, self.request))
            changed = target.sink.model_copy(update=dict(way.settings))
            if changed.functions():
                # It has its function already, and there is no file beside a spec to find one in.
                object.__setattr__(changed, "functions", dict)
            self.targets[way.query] = Target(changed, target.read)
        return self.targets[way.query]

    def add_rows(self, name: str, *rows: Row) -> None:
        """One more file, which is one more batch."""
        (self.folder / "in").mkdir(exist_ok=True)
        half = self.folder / "half"
        half.write_text("".join(json.dumps({"k": k, "v": v}) + "\n" for k, v in rows))
        # Spark reads the oldest first; files of one millisecond have no order.
        os.utime(half, (_LONG_AGO + len(list((self.folder / "in").iterdir())),) * 2)
        half.rename(self.folder / "in" / name)

    def run(self, *queries: str, adopt: bool = False) -> bool:
        """These queries, or all, until they are caught up."""
        events = EventBus()
        events.listen(self.events.append)
        try:
            return run_pipeline(
                self.spark,
                self.pipeline(),
                RunOptions(queries, until_caught_up=True, adopt=adopt),
                events,
                {},
            )
        finally:
            events.close()

    def failures(self) -> list[tuple[str | None, Any, Any]]:
        """Which queries failed, in which batch, and why."""
        failed = [event for event in self.events if event.event == "query_failed"]
        return [(event.query, event.data["batch"], event.data["reason"]) for event in failed]

    def forget_last_commits(self) -> None:
        """Leave each checkpoint as a crash between its sink and Spark's commit would."""
        for commits in (self.folder / ".millstream" / "checkpoints").glob("*/commits"):
            last = max(int(file.name) for file in commits.iterdir() if file.name.isdigit())
            (commits / str(last)).unlink()
            (commits / f".{last}.crc").unlink(missing_ok=True)

    def rows(self) -> dict[str, list[Row]]:
        """What each sink holds, by its query."""
        return {name: target.read() for name, target in self.targets.items()}
