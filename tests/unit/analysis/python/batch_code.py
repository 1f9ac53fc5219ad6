"""Source of foreachBatch functions, and what is read in it."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from millstream.analysis.python import foreach_batch

if TYPE_CHECKING:
    from millstream.analysis.query.plan_model import BatchCode


def code(body: str, extra: str = "", head: str = "def each(batch, number):") -> BatchCode:
    text = f"{head}\n{textwrap.indent(textwrap.dedent(body).strip(), '    ')}\n{textwrap.dedent(extra)}"
    findings = foreach_batch.read_source(text, "job.py", 1, "each")
    assert findings is not None
    return findings


JDBC = 'batch.write.format("jdbc").option("url", URL).mode("append").save()'
