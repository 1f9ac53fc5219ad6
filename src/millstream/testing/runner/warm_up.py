"""Warm up the JVM, whose first micro-batch takes seconds longer, so that no test is charged for it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from millstream.testing.files.loader import load_text
from millstream.testing.harness.session import create_case_folder
from millstream.testing.runner.execute import run_case

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# One stateful batch that counts messages.
_TEST = """
pipeline:
  name: warm
  sources:
    rows: {kafka: {bootstrap_servers: "localhost:1", subscribe: rows}, schema: {k: string}, on_malformed: dead_letter}
  views: {counts: "SELECT k, count(*) AS n FROM rows GROUP BY k"}
  queries: {counts: {output_mode: update, to: {console: {}}}}
tests:
  one row is counted:
    steps: [{feed: {rows: [{k: a}]}, expect: [{k: a, n: 1}]}]
"""


def warm(spark: SparkSession) -> bool:
    """Run a test of one row, so that the JVM loads the classes that tests need. Return whether it passed.

    The warm-up takes two seconds or more, and the first test takes that much less.
    """
    (case,) = load_text("warm.yml", _TEST, Path("warm.yml"), lambda _: {}).cases
    with create_case_folder() as folder:
        return run_case(spark, case, folder).has_passed
