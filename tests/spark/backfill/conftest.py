"""A shop whose stream has run over some days, and backfills over it in the session of the tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from millstream.backfill.execute import backfill
from millstream.backfill.fresh_start import PastChoice, finish_past, renew_checkpoint
from millstream.backfill.options import BackfillOptions, parse_time
from millstream.checking.spark_analysis import analyse_pipeline
from millstream.frames.build_views import build_frames
from millstream.pipeline.spec_file import load_text
from millstream.spark import session
from small_batches import SMALL_BATCHES, changed_settings
from spark.conftest import Project

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from millstream.analysis.query.plan_model import PlannedQuery
    from millstream.backfill.report import BackfillReport, SinkOutcome
    from millstream.pipeline.model import Pipeline
    from millstream.pipeline.spec_file import LoadedSpec

PROVIDER, PARTITIONS = "spark.sql.streaming.stateStore.providerClass", "spark.sql.shuffle.partitions"
SPEC = """
name: shop
defaults: {checkpoints: checkpoints}
sources:
  orders:
    json: in
    schema: {id: string, amount: int, at: timestamp}
    watermark: {event_time: at, delay_threshold: 10 minutes}
    on_malformed: drop
views:
  sums: |
    SELECT window.start AS since, count(*) AS n, sum(amount) AS amount
    FROM orders GROUP BY window(at, '10 minutes')
queries:
  sums: {output_mode: update, to: {delta: {path: sums, merge_on: [since]}}}
  closed: {from: sums, to: {delta: closed}}
  copy: {from: orders, to: [{delta: copy}, {parquet: files}]}
"""


class Shop(Project):
    """A project whose pipeline comes from a text, with its plans."""

    spec = SPEC

    def __init__(self, folder: Path, spark: SparkSession) -> None:
        super().__init__(folder, spark)
        self._plans: dict[tuple[str, SparkSession], tuple[PlannedQuery, ...]] = {}

    def loaded(self) -> LoadedSpec:
        """The spec, read."""
        loaded = load_text("pipeline.yml", self.spec, self.folder, {})
        assert loaded.pipeline is not None, loaded.findings
        return loaded

    def plans(self, loaded: LoadedSpec) -> tuple[PlannedQuery, ...]:
        """The plans of all queries. Nothing but the spec and the session has a part in them."""
        key = (self.spec, self.spark)
        if key not in self._plans:
            self._plans[key] = analyse_pipeline(self.spark, loaded).queries
        return self._plans[key]

    def stream(self, *queries: str) -> None:
        """Run the stream until it is caught up."""
        from millstream.engine.run import RunOptions

        pipeline = self.loaded().pipeline
        assert pipeline is not None
        assert self.run(pipeline, RunOptions(select=queries, until_caught_up=True))

    def backfill(
        self, *queries: str, start: str | None = None, end: str | None = None, **given: Any
    ) -> BackfillReport:
        """A backfill of these queries."""
        loaded = self.loaded()
        pipeline = loaded.pipeline
        assert pipeline is not None
        options = BackfillOptions(start and parse_time(start), end and parse_time(end), **given)
        planned = self.plans(loaded)
        return backfill(self.spark, pipeline, planned, queries or list(pipeline.queries), options, print)

    def compare(self, query: str, **given: Any) -> SinkOutcome:
        """The first sink of a query, compared."""
        return self.backfill(query, compare=True, **given).outcomes[0]

    def load(self, query: str) -> tuple[Pipeline, PlannedQuery]:
        """The pipeline, and the plan of a query."""
        loaded = self.loaded()
        assert loaded.pipeline is not None
        planned = {item.name: item for item in self.plans(loaded)}
        return loaded.pipeline, planned[query]

    def renew(self, query: str, past: PastChoice) -> Path:
        """`millstream plan --apply --yes --past …` for one query. Returns the former checkpoint."""
        pipeline, planned = self.load(query)
        frame = build_frames(self.spark, pipeline)[pipeline.reads(query)]
        return renew_checkpoint(self.spark, pipeline, planned, frame, past, lambda _: None)

    def finish(self, query: str) -> None:
        """`millstream plan --apply` after one that was killed."""
        pipeline, planned = self.load(query)
        finish_past(self.spark, pipeline, planned, lambda _: None)

    def delete(self, name: str, where: str | None = None) -> None:
        """Delete rows of a table, or all, behind everybody's back and without Spark."""
        DeltaTable(str(self.folder / name)).delete(where)

    def update(self, name: str, where: str | None = None, **columns: str) -> None:
        """Set columns of a table to these expressions, likewise."""
        DeltaTable(str(self.folder / name)).update(updates=columns, predicate=where)

    def insert(self, name: str, **columns: Any) -> None:
        """Add a row to a table, likewise."""
        table = DeltaTable(str(self.folder / name))
        write_deltalake(
            table, pa.Table.from_pylist([columns], table.to_pyarrow_table().schema), mode="append"
        )


def share_table(spec: str) -> str:
    """The spec, in which another query appends to the table of `copy`, its only sink."""
    alone = spec.replace("[{delta: copy}, {parquet: files}]", "{delta: copy}")
    return alone.replace("queries:\n", "queries:\n  other: {from: orders, to: {delta: copy}}\n")


def order(id: str, at: str, amount: int = 1) -> dict[str, Any]:
    """One order on the first of January."""
    return {"id": id, "amount": amount, "at": f"2026-01-01T{at}Z"}


def fill_input(result: Shop) -> None:
    """Five orders; the last one closes every window before 12:30."""
    result.add_lines(order("a", "12:01:00", 3), order("b", "12:02:00", 4))
    result.add_lines(order("c", "12:14:00", 5), order("d", "12:21:00", 6))
    result.add_lines(order("e", "13:00:00", 7))


@pytest.fixture
def shop(tmp_path: Path, spark: SparkSession) -> Iterator[Shop]:
    """Five orders, which no query has read."""
    result = Shop(tmp_path, spark)
    fill_input(result)
    yield result
    for stream in spark.streams.active:
        stream.stop()


@pytest.fixture(scope="session")
def shop_after_run(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Shop:
    """The same after each query has read all of them."""
    result = Shop(tmp_path_factory.mktemp("streamed"), spark)
    fill_input(result)
    with changed_settings(spark, SMALL_BATCHES):
        result.stream()
    result.keep()
    return result


@pytest.fixture
def streamed(shop_after_run: Shop) -> Iterator[Shop]:
    """The same, for one test: it may change whatever it likes."""
    shop_after_run.restore()
    shop_after_run.spec = SPEC
    yield shop_after_run
    for stream in shop_after_run.spark.streams.active:
        stream.stop()


def figures(found: SinkOutcome) -> tuple[int, int, int]:
    """Missing, surplus, different."""
    return found.missing, found.surplus, found.different


@pytest.fixture
def commands(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    """The shop, whose commands use the session of the tests, with the settings of the spec."""
    before = {name: shop.spark.conf.get(name, None) for name in (PROVIDER, PARTITIONS)}

    def open_session(_: str, settings: dict[str, str], **__: object) -> object:
        for name, value in settings.items():
            shop.spark.conf.set(name, value)
        return shop.spark

    monkeypatch.setattr(session, "open_session", open_session)
    monkeypatch.setattr(session, "stop_session", lambda _: None)
    yield shop
    for name, value in before.items():
        if value is None:
            shop.spark.conf.unset(name)
        else:
            shop.spark.conf.set(name, value)
