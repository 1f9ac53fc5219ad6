"""A process is killed in a batch that it has collected for two sinks; after the next start each has each row once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg
import pyarrow.parquet
import pytest
import yaml

from delta_tables import read_parquet_rows
from recovery import dying_commands, outage, same_process

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from millstream.devstack.supervisor.state import Endpoints

pytestmark = [pytest.mark.timeout(600), pytest.mark.usefixtures("small_batches")]

LAYOUTS = ("moved", "by_batch")
CASES = [
    *(
        (point, layout)
        for point in ("files.staged", "files.committed", "files.published")
        for layout in LAYOUTS
    ),
    ("postgres.open", "moved"),
    ("postgres.committed", "by_batch"),
    ("batch.delivered", "moved"),
]
BATCHES = 4
ALL = sorted((key, number) for key in outage.KEYS for number in range(BATCHES))


@pytest.fixture(scope="module")
def killed(stack: Endpoints, tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Path]:
    """A project for each point and layout, each killed there in its second batch, by the death of one process."""
    folders = {}
    for point, layout in CASES:
        folder = folders[point, layout] = tmp_path_factory.mktemp("killed")
        outage.write_input(folder, BATCHES)
        spec = outage.spec(folder, outage.table(stack, _table(point, layout)))
        postgres, _ = spec["queries"]["copy"]["to"]
        del postgres["on_error"]
        files = {"parquet": {"path": str(folder / "out"), "layout": layout}}
        spec["queries"]["copy"]["to"] = [files, postgres]
        (folder / "pipeline.yml").write_text(yaml.safe_dump(spec))
    dying_commands.die(
        [(str(folder), dying_commands.RUN, point, 2) for (point, _), folder in folders.items()],
        tmp_path_factory.mktemp("log") / "spark.log",
    )
    return folders


@pytest.mark.parametrize(("point", "layout"), CASES)
def test_each_sink_has_each_row_once(
    point: str, layout: str, killed: dict[tuple[str, str], Path], spark: SparkSession, stack: Endpoints
) -> None:
    folder = killed[point, layout]
    writers = {pyarrow.parquet.read_metadata(file).created_by for file in folder.rglob("*.parquet")}
    # The first batch of a start is Spark's, and the one in which it died is not.
    assert {writer.split(" ")[0] for writer in writers} == {"parquet-mr", "parquet-cpp-arrow"}

    same_process.catch_up(spark, folder)

    assert sorted(read_parquet_rows(folder / "out", "key", "n")) == ALL
    with psycopg.connect(stack.postgres) as connection:
        rows = connection.execute(f"SELECT key, n FROM {_table(point, layout)} ORDER BY key, n").fetchall()
    assert rows == ALL


def _table(point: str, layout: str) -> str:
    return f"collected_{point.replace('.', '_')}_{layout}"
