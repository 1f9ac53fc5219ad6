"""A foreachBatch function appends the rows of a repeated batch once more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.rule_context import Code, Facts
from millstream.connectors import spark_formats

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.query.plan_model import PlannedQuery
    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


# Formats whose rows replace those of the same key, also in append mode.
_REPLACING = frozenset({"org.apache.spark.sql.cassandra", "cassandra", "hudi", "org.apache.hudi"})


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:  # noqa: ARG001 - its source alone
    """Report writes that only append, without the batch id, in a function that recognises no repeated batch."""
    for sink in query.sinks:
        function = sink.function
        if function is None:
            continue
        for write in function.repeated_writes:
            if write.format in spark_formats.STORE_NOTHING or write.format in _REPLACING:
                continue
            suffix = f" to {write.format}" if write.format else ""
            yield CODE.warning(
                f"query '{query.name}' appends the rows of a batch{suffix} again when the batch is repeated",
                write.span,
                label="appends",
                why="after a crash before the commit of a batch, Spark repeats the batch with the same batch id",
                fix="merge the rows by a key; or write the batch id and the rows in one transaction, and skip a "
                "batch whose id is already stored (Delta does this with the options txnAppId and txnVersion)",
                query=query.name,
            )
            break
