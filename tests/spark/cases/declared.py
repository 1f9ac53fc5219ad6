"""Processors of the pipeline beside this file: their state is declared in the spec, and opened before they run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd
from pyspark.sql import Row

if TYPE_CHECKING:
    from collections.abc import Iterator


class Visits:
    """A number, the pages in order and how often each was seen, of single rows."""

    total: Any
    pages: Any
    seen: Any

    def handleInitialState(self, key: Any, row: Any, timers: Any) -> None:  # noqa: ARG002, N802 - Spark's
        """The number of an earlier life."""
        self.total.update((row.total,))

    def handleInputRows(self, key: Any, rows: Iterator[Any], timers: Any) -> Iterator[Row]:  # noqa: ARG002, N802
        """Count."""
        total = self.total.get()[0] if self.total.exists() else 0
        for row in rows:
            total += 1
            self.pages.appendValue((row.page,))
            before = self.seen.getValue((row.page,)) if self.seen.containsKey((row.page,)) else (0,)
            self.seen.updateValue((row.page,), (before[0] + 1,))
        self.total.update((total,))
        path = " ".join(item[0] for item in self.pages.get())
        most = max(item[0] for item in self.seen.values())
        yield Row(user=key[0], total=total, path=path, most=most)


class Lately:
    """How many rows there were since the key fell silent for ten seconds, of frames."""

    count: Any

    def init(self, handle: Any) -> None:
        """Spark's own call comes after the declared state was opened."""
        assert self.count is not None
        assert handle is not None

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timers: Any) -> Iterator[pd.DataFrame]:  # noqa: ARG002, N802
        """Count."""
        total = (self.count.get()[0] if self.count.exists() else 0) + sum(len(frame) for frame in rows)
        self.count.update((total,))
        yield pd.DataFrame({"user": [key[0]], "n": [total]})
