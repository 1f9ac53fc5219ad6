"""A project that writes to two sinks of one name, which an older version numbered in the order of the spec."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import psycopg

from recovery import dying_commands

if TYPE_CHECKING:
    from pathlib import Path

    from millstream.devstack.supervisor.state import Endpoints
    from recovery.dying_commands import Case

SPEC = """
name: shop
spark: {{spark.master: "local[1]", spark.driver.memory: 1g}}
sources:
  orders: {{json: {{path: in, max_files_per_trigger: 1}}, schema: {{id: string}}, on_malformed: drop}}
queries:
  orders:
    to:
      - postgres: {{url: "{first}", table: orders}}
      - postgres: {{url: "{second}", table: {table}}}
"""


class SwappedSinks:
    """The project, with two batches to read, and its two databases."""

    def __init__(self, stack: Endpoints, folder: Path) -> None:
        self.folder, self.urls = folder, []
        for name in ("between_one", "between_two"):
            ask(stack.postgres, f"CREATE DATABASE {name}")
            self.urls.append(f"{stack.postgres.rpartition('/')[0]}/{name}")
        (folder / "in").mkdir()
        for number in range(2):
            file = folder / "in" / f"{number}.json"
            file.write_text(json.dumps({"id": f"row {number}"}))
            os.utime(file, (1_767_225_600 + number,) * 2)
        self._write(SPEC.format(first=self.urls[0], second=self.urls[1], table="orders"))
        # The third commit is that of batch 1 in the first database; the second one has batch 0 only.
        self.case: Case = (str(folder), dying_commands.RUN, "postgres.committed", 3)

    def swap(self) -> None:
        """Write the spec with the sinks the other way round."""
        self._write(SPEC.format(first=self.urls[1], second=self.urls[0], table="public.orders"))

    def rename_as_an_older_version(self) -> None:
        """Number the sinks in the order of the spec, in both ledgers and in the record."""
        file = self.folder / ".millstream" / "checkpoints" / "orders" / "_millstream" / "record.json"
        record = json.loads(file.read_text())
        names = ("postgres:orders", "postgres:orders#2")
        for sink, url, name in zip(record["sinks"], self.urls, names, strict=True):
            key = f"{sink['key'].partition('/')[0]}/{name}"
            for table in ("fence", "ledger"):
                ask(url, f"UPDATE millstream.{table} SET writer = '{key}' WHERE writer = '{sink['key']}'")
            sink["key"] = key
            sink.pop("since", None)
        file.write_text(json.dumps(record))

    def _write(self, spec: str) -> None:
        (self.folder / "pipeline.yml").write_text(spec)


def ask(url: str, text: str) -> list[tuple[Any, ...]]:
    """The rows of a query."""
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(text)
        return cursor.fetchall() if cursor.description else []
