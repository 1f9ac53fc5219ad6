"""A project whose files, tables and dead letters are on another file system, with its input on this machine."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import yaml

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

FILES, ROWS = 5, 100
# As many as are needed for one driver that is suspended in its second batch, and for a batch of its successor.
FEW_FILES = 3
SPEC = """
name: remote
spark: {spark.driver.memory: 1g, spark.sql.shuffle.partitions: 2, spark.master: "local[2]"}
sources:
  orders:
    json: {path: input, max_files_per_trigger: 1}
    schema: {id: bigint, user: string}
    on_malformed: dead_letter
views:
  totals: SELECT user, count(*) AS orders FROM orders GROUP BY user
queries:
  orders:
    output_mode: append
    to: [{parquet: {path: "ROOT/files"}}, {delta: {path: "ROOT/table"}}]
  totals:
    output_mode: update
    to: {delta: {path: "ROOT/totals", merge_on: [user]}}
"""


def write_project(folder: Path, root: str, spark: Mapping[str, str], **more: object) -> None:
    """Write the spec, with these settings of Spark and `more` keys, and its input files."""
    spec = yaml.safe_load(SPEC.replace("ROOT", root)) | more
    spec["spark"] |= spark
    (folder / "pipeline.yml").write_text(yaml.safe_dump(spec), encoding="utf-8")
    write_input(folder, FILES)


def write_input(folder: Path, files: int) -> None:
    """Have so many input files, each with a malformed record."""
    (folder / "input").mkdir(exist_ok=True)
    for surplus in range(files, FILES):
        (folder / "input" / f"{surplus}.json").unlink(missing_ok=True)
    for file in range(files):
        orders = (
            {"id": number, "user": f"u{number % 7}"} for number in range(file * ROWS, (file + 1) * ROWS)
        )
        lines = [*map(json.dumps, orders), f"torn {file}"]
        (folder / "input" / f"{file}.json").write_text("\n".join(lines), encoding="utf-8")
