"""A run that ends once all is read, over a query whose time-outs go by the machine's clock."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from millstream.engine.run import RunOptions

if TYPE_CHECKING:
    from spark.conftest import Project

COUNT = """
import pandas as pd

def count(key, frames, state):
    if state.hasTimedOut:
        state.remove()
        return
    many = sum(len(frame) for frame in frames) + (state.get[0] if state.exists else 0)
    state.update((many,))
    state.setTimeoutDuration(3_600_000)
    yield pd.DataFrame({"id": [key[0]], "many": [many]})
"""


@pytest.mark.timeout(120)
def test_it_ends_though_spark_asks_for_a_batch_after_each(project: Project) -> None:
    (project.folder / "counting.py").write_text(COUNT)
    project.add_lines({"id": "a", "amount": 1, "at": "2026-01-01T12:01:00Z"})
    project.add_lines({"id": "a", "amount": 2, "at": "2026-01-01T12:02:00Z"})
    view = {
        "apply_in_pandas_with_state": "counting:count",
        "from": "orders",
        "group_by": ["id"],
        "schema": {"id": "string", "many": "bigint"},
        "state": {"many": "bigint"},
        "timeout": "processing_time",
        "output_mode": "update",
    }
    sink = {"delta": {"path": str(project.folder / "counts"), "merge_on": ["id"]}}
    pipeline = project.pipeline(
        views={"counts": view}, queries={"counts": {"output_mode": "update", "to": sink}}
    )
    empty = project.spark.conf.get("spark.sql.streaming.noDataMicroBatches.enabled")

    assert project.run(pipeline, RunOptions(until_caught_up=True))

    assert project.rows("counts") == [("a", 2)]
    assert project.spark.conf.get("spark.sql.streaming.noDataMicroBatches.enabled") == empty
