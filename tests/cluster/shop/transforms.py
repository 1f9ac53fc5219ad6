"""A Python view and a processor, which run in the workers of executors."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import rates
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from rates import add_tax


@F.udf("double")  # type: ignore[untyped-decorator]
def gross(amount: float) -> float:
    """The price with tax; fails in a process that a worker did not start."""
    assert Path.cwd().parent.name.startswith("app-"), f"this runs in {Path.cwd()}"
    assert add_tax(1) == rates.RATE
    return add_tax(amount)


def priced(orders: DataFrame) -> DataFrame:
    """Orders with prices."""
    return orders.select("id", "user", gross("amount").alias("gross"))


class Totals:
    """The number of orders of each user."""

    total: Any

    def handleInputRows(self, key: Any, rows: Any, timers: Any) -> Iterator[pd.DataFrame]:  # noqa: ARG002, N802 - Spark's names
        """Add the orders of a batch."""
        before = self.total.get()[0] if self.total.exists() else 0
        count = before + sum(len(frame) for frame in rows)
        self.total.update((count,))
        yield pd.DataFrame({"user": [key[0]], "orders": [count]})
