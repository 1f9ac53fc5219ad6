"""An error of Spark or Delta is explained as one of the table only if it is about the table."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from millstream.connectors.delta.errors import explain
from millstream.diagnostics.failure import Outage

SINK: Any = SimpleNamespace(target=lambda: "lake/orders", cdc=None)


@pytest.mark.parametrize(
    "line", ["No space left on device", "Permission denied", "S3: AccessDenied", "schema mismatch"]
)
def test_a_row_that_quotes_an_error_of_another_program_says_nothing_of_the_table(line: str) -> None:
    text = (
        "[TASK_WRITE_FAILED] Task failed while writing rows. SQLSTATE: 58030\n"
        "Caused by: org.apache.spark.SparkRuntimeException: [USER_RAISED_EXCEPTION] expectation 'known' of source "
        f"'logs' does not hold: {line} SQLSTATE: P0001"
    )

    assert explain(RuntimeError(text), SINK) is None


def test_a_full_disk_is_an_outage_of_the_table() -> None:
    error = explain(RuntimeError("java.io.IOException: No space left on device"), SINK)

    assert isinstance(error, Outage)
    assert "lake/orders" in error.what
