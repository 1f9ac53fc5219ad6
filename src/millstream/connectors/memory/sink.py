"""Memory sink: a table in the driver that exists as long as the process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from millstream.connectors.api.sink import Sink
from millstream.spec.guarantee import Guarantee
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from millstream.connectors.api.writer import SinkIdentity, Writer


class MemorySink(Sink):
    """A table in the driver's memory, as a global temporary view, for learning and testing."""

    kind = "memory"
    main = "table"
    modes = frozenset(OutputMode)
    stores_rows = False

    table: str = Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", examples=["counts"])
    """Name of the table; Spark reads it as `global_temp.NAME`."""

    def writer(self, identity: SinkIdentity) -> Writer:
        """Create a writer that stores rows in this process."""
        from millstream.connectors.memory.writer import MemoryWriter  # noqa: PLC0415 - loads pyarrow

        return MemoryWriter(self, identity)

    def guarantee(self, mode: OutputMode) -> tuple[Guarantee, str]:  # noqa: ARG002 - the same in all
        """Guarantee at-most-once."""
        return Guarantee.AT_MOST_ONCE, "rows are lost when the process ends"

    def target(self) -> str:
        """Return the table's name."""
        return self.table

    def rows(self, limit: int) -> tuple[list[str], list[list[object]]] | None:
        """Return the newest rows of this process; none in any other."""
        from millstream.connectors.memory.tables import read_table  # noqa: PLC0415 - loads pyarrow

        table = read_table(self.table)
        names = list(table.column_names)
        rows = table.slice(max(0, table.num_rows - limit)).to_pylist()
        return names, [[row[name] for name in names] for row in reversed(rows)]
