"""Run the flows of a declarative project over given rows, with every table in the folder of the proof."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Window, functions

from millstream.checking.scripts.declarative.expectations import apply_expectations
from millstream.checking.scripts.declarative.flow_graph import DatasetKind
from millstream.checking.scripts.interception.placeholders import Unknown
from millstream.proof.migration.script_execution import first_line
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

    from millstream.checking.scripts.declarative.flow_graph import DeclaredFlow, FlowGraph
    from millstream.proof.migration.script_execution import ProofExecution

_RANK = "__rank"
_ONE_ROW_A_KEY = "1"
"""The SCD type of a table that holds the newest row of each key."""


@dataclass
class FlowRun:
    """Fills the tables of a project, each after those that it reads. A table has the number of its dataset."""

    execution: ProofExecution
    numbers: dict[str, int] = field(default_factory=dict)
    """The number of each table and sink that has been started, by the key of its dataset."""

    def run(self, graph: FlowGraph, session: SparkSession) -> None:
        """Fill the tables of all datasets."""
        self.numbers.clear()

        def read_written(key: str, streaming: bool) -> DataFrame | None:
            self._fill(graph, session, key)
            return self.execution.tables.read(session, key, streaming=streaming)

        graph.read_written = read_written
        # In the order of a check, in which sources that have one name are numbered.
        for flow in graph.flows:
            dataset = graph.datasets.get(graph.target_key(flow))
            if dataset is None or dataset.kind is DatasetKind.TEMPORARY_VIEW:
                graph.make(flow)
            else:
                self._fill(graph, session, graph.target_key(flow))

    def _fill(self, graph: FlowGraph, session: SparkSession, key: str) -> None:
        if key in self.numbers:
            return
        self.numbers[key] = number = list(graph.datasets).index(key) + 1
        for position, flow in enumerate(each for each in graph.flows if graph.target_key(each) == key):
            graph.make(flow)
            try:
                self._run(
                    graph, flow, session, number, f"checkpoint-{self.execution.runs}-{number}-{position}"
                )
            except PySparkException as error:
                self.execution.failures[number] = first_line(error)

    def _run(
        self, graph: FlowGraph, flow: DeclaredFlow, session: SparkSession, number: int, checkpoint: str
    ) -> None:
        skipped = self.execution.skipped.setdefault(number, [])
        if flow.error is not None or flow.frame is None:
            self.execution.failures[number] = first_line(flow.error or ValueError("its query was not built"))
            return
        if isinstance(flow.frame, Unknown):
            skipped.append(f"{flow.frame.doubt.what}, which is not known")
            return
        if flow.changes and str(flow.changes.get("stored_as_scd_type") or 1) != _ONE_ROW_A_KEY:
            skipped.append("an AUTO CDC flow that keeps the history of each key")
            return
        tables, key = self.execution.tables, graph.target_key(flow)
        dataset = graph.datasets[key]
        frame: DataFrame | Unknown = flow.frame
        if flow.changes:
            # The flow's own frame lacks the columns that it orders by and leaves out.
            source = session.readStream.table(flow.changes["source"])
            frame, place, owner = apply_expectations(source, dataset.expectations), f"changes of {key}", 0
        else:
            frame, place, owner = graph.written_rows(flow, dataset), key, number
        assert isinstance(frame, DataFrame)
        if not frame.isStreaming:
            tables.write(frame, place, "", "overwrite", owner)
            return
        self.execution.run_stream(
            frame,
            OutputMode.APPEND,
            checkpoint,
            lambda batch, _id: tables.write(batch, place, "", "append", owner),
        )
        changes = tables.read(session, place) if flow.changes else None
        if changes is not None:
            tables.write(find_newest(changes, flow.changes), key, "", "overwrite", number)


def find_newest(changes: DataFrame, settings: Mapping[str, Any]) -> DataFrame:
    """Return the newest row of each key, without the keys whose newest row is a deletion."""
    order, deleted = settings["sequence_by"], settings.get("apply_as_deletes")
    order = functions.col(order) if isinstance(order, str) else order
    rank = functions.row_number().over(Window.partitionBy(*settings["keys"]).orderBy(order.desc()))
    newest = changes.withColumn(_RANK, rank).where(functions.col(_RANK) == 1).drop(_RANK)
    if deleted is not None:
        is_deleted = functions.expr(deleted) if isinstance(deleted, str) else deleted
        newest = newest.where(~functions.coalesce(is_deleted, functions.lit(False)))  # noqa: FBT003 - a literal
    columns, other_columns = settings.get("column_list"), settings.get("except_column_list")
    return newest.select(*columns) if columns else newest.drop(*other_columns or ())
