"""When a file is saved, an editor gets what Spark says about it; one Spark serves specs and scripts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types

from editor import Editor, edit

if TYPE_CHECKING:
    from pathlib import Path

SPEC = """\
name: shop
sources:
  orders: {rate: {}}
views:
  sums: SELECT value, missing_column FROM orders
queries:
  sums: {trigger: 5 seconds, to: {console: }}
"""
# Speaks on stdout, where the protocol runs, and reads stdin, where the requests come in.
SCRIPT = """\
import sys

from pyspark.sql import SparkSession

print("{}")
sys.stdin.readline()
spark = SparkSession.builder.getOrCreate()
rows = spark.readStream.format("rate").load()
rows.groupBy("value").count().writeStream.format("console").outputMode("append").start().awaitTermination()
"""


def test_spark_checks_what_is_saved(tmp_path: Path) -> None:
    async def act(editor: Editor) -> None:
        spec = editor.open("pipeline.yml", SPEC)
        (column,) = await editor.until_some(spec)
        script = editor.open("job.py", SCRIPT)
        found = await editor.until_some(script)

        assert column.range.start.line == 4
        assert "missing_column" in column.message
        assert [
            item.range.start.line for item in found if item.severity is types.DiagnosticSeverity.Error
        ] == [8]
        assert editor.messages == []

        fixed = SPEC.replace(", missing_column", "")
        (tmp_path / "pipeline.yml").write_text(fixed)
        editor.change(spec, fixed)
        editor.client.text_document_did_save(
            types.DidSaveTextDocumentParams(types.TextDocumentIdentifier(spec))
        )
        await editor.until(spec, [])

    edit(tmp_path, act)
