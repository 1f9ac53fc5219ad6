"""The search for the record by which a batch fails, without Spark."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from millstream.connectors.api.values.offsets import OffsetRange
from millstream.engine.recovery.poison_record import _Search


def test_a_batch_that_fails_in_no_trial_names_no_record() -> None:
    pipeline: Any = SimpleNamespace(sources={"orders": None})
    session: Any = None

    assert _Search(session, pipeline, "copy", "orders", ()).narrow(OffsetRange(None, "{}")) is None
