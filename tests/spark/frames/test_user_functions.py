"""Batches and rows handed to the user's own code, and a table in memory, in a run of a pipeline."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from millstream.pipeline.spec_file import load_spec

if TYPE_CHECKING:
    from pathlib import Path

    from spark.conftest import Project

A = {"id": "a", "amount": 3, "at": "2026-01-01T12:01:00Z"}
B = {"id": "b", "amount": 4, "at": "2026-01-01T12:02:00Z"}

STORE = """
import json
from pathlib import Path

HERE = Path(__file__).parent


def store(frame, batch):
    rows = [row.id for row in frame.collect()]
    seen = [batch.pipeline, batch.query, batch.query_id, batch.batch_id, batch + 1, rows]
    with (HERE / "seen").open("a") as file:
        file.write(json.dumps(seen) + "\\n")


class Sender:
    def open(self, partition_id, epoch_id):
        self.lines = []
        return True

    def process(self, row):
        self.lines.append(row.id)

    def close(self, error):
        with (HERE / "sent").open("a") as file:
            file.writelines(f"{line}\\n" for line in self.lines)
"""


def copied(project: Project, sink: dict[str, Any]) -> Any:
    (project.folder / "deliveries.py").write_text(STORE)
    return project.pipeline(queries={"copy": {"from": "orders", "to": [sink]}})


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines()


def test_a_function_gets_each_batch_and_whose_it_is(project: Project) -> None:
    project.add_lines(A)
    project.add_lines(B)

    assert project.run(copied(project, {"foreach_batch": "deliveries:store"}))

    first, second = (json.loads(line) for line in lines(project.folder / "seen"))
    assert first[:2] == ["shop", "copy"]
    assert first[2] == second[2]
    assert (first[3:5], second[3:5]) == ([0, 1], [1, 2])
    assert sorted(first[5] + second[5]) == ["a", "b"]


def test_a_batch_that_spark_did_not_commit_comes_again_with_its_number(project: Project) -> None:
    project.add_lines(A)
    pipeline = copied(project, {"foreach_batch": "deliveries:store"})
    project.run(pipeline)

    project.forget_last_commit("copy")
    project.run(pipeline)

    first, second = lines(project.folder / "seen")
    assert first == second


def test_a_class_gets_each_row_in_tasks(project: Project) -> None:
    project.add_lines(A, B)

    assert project.run(copied(project, {"foreach": "deliveries:Sender"}))

    assert sorted(lines(project.folder / "sent")) == ["a", "b"]


def test_a_table_in_memory_is_read_by_its_name(project: Project) -> None:
    project.add_lines(A)
    project.add_lines(B)

    assert project.run(copied(project, {"memory": "orders_so_far"}))

    rows = project.spark.table("global_temp.orders_so_far").collect()
    assert sorted(row.id for row in rows) == ["a", "b"]


@pytest.mark.parametrize("named", ["deliveries:sotre", "nowhere:store"])
def test_a_function_that_is_not_there_ends_the_run_in_one_sentence(project: Project, named: str) -> None:
    project.add_lines(A)

    assert not project.run(copied(project, {"foreach_batch": named}))

    gave_up = [event for event in project.events if named.split(":")[0] in str(event)]
    assert gave_up


CLEANING = "def clean(text):\n    return text.strip().upper()\n"
VIEW = """
from pyspark.sql.functions import udf
from cleaning_of_a_view import clean

@udf("string")
def cleaned(id):
    return clean(id)

@udf("string")
def cleaned_later(id):
    import cleaning_of_a_view
    return cleaning_of_a_view.clean(id)

def view(orders):
    return orders.select(cleaned("id").alias("id"), cleaned_later("id").alias("later"))
"""
SPEC = """
import millstream as ms
from pyspark.sql.functions import udf
from cleaning_of_a_spec import clean

shop = ms.declare("shop")
shop.source("orders", ms.json("in"), schema={"id": "string"}, on_malformed="drop")

def tidy(id):
    return clean(id)

@shop.view
def tidied(orders):
    return orders.select(udf(tidy, "string")("id").alias("id"))

shop.query("tidied", to=ms.parquet("cleaned"))
"""


def test_a_function_uses_modules_next_to_a_spec_that_is_not_in_the_working_directory(
    project: Project,
) -> None:
    project.add_lines(A)
    (project.folder / "cleaning_of_a_view.py").write_text(CLEANING)
    (project.folder / "transforms.py").write_text(VIEW)
    target = str(project.folder / "cleaned")
    pipeline = project.pipeline(
        views={"cleaned": {"python": "transforms:view"}}, queries={"cleaned": {"to": [{"parquet": target}]}}
    )

    assert project.run(pipeline)

    assert project.rows("cleaned", "parquet") == [("A", "A")]


def test_a_spec_in_python_that_is_not_in_the_working_directory_uses_its_functions_and_modules(
    project: Project,
) -> None:
    project.add_lines(A)
    (project.folder / "cleaning_of_a_spec.py").write_text(CLEANING)
    (project.folder / "spec_of_another_folder.py").write_text(SPEC)
    pipeline = load_spec(project.folder / "spec_of_another_folder.py", {}).pipeline
    assert pipeline is not None

    assert project.run(pipeline)

    assert project.rows("cleaned", "parquet") == [("A",)]
