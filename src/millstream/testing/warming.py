"""The first micro-batch of a JVM takes seconds that the tenth does not: it is no test's own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from millstream.testing.load import load_text
from millstream.testing.play import play
from millstream.testing.session import case_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# One batch of messages, counted, with state.
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
    """Play a test of one row, so that the JVM has loaded what tests need; False where it did not pass.

    It takes two seconds or more, and so much less the first test.
    """
    (case,) = load_text("warm.yml", _TEST, Path("warm.yml"), lambda _: {}).cases
    with case_folder() as folder:
        return play(spark, case, folder).passed
