"""The function that Spark calls with each batch, once it was let go."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from millstream.engine.delivery.foreach_batch_callback import ForeachBatchCallback

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ROWS = cast("DataFrame", object())


def test_a_batch_is_passed_on() -> None:
    got: list[tuple[object, int]] = []

    ForeachBatchCallback(lambda rows, batch: got.append((rows, batch)))(ROWS, 3)

    assert got == [(ROWS, 3)]


def test_a_batch_after_the_end_is_refused_so_that_it_is_never_committed() -> None:
    hand = ForeachBatchCallback(lambda _rows, _batch: None)
    hand.detach()

    with pytest.raises(RuntimeError, match="batch 3 came after its query was closed"):
        hand(ROWS, 3)
