"""The memory sink: a table in the driver that lives as long as the process."""

from __future__ import annotations

from pydantic import Field

from millstream.connectors.sink import Sink, SinkIdentity, Writer
from millstream.spec.guarantee import Guarantee
from millstream.spec.mode import OutputMode


class MemorySink(Sink):
    """A table in the driver's memory, as a global temporary view, to learn and to test with."""

    kind = "memory"
    main = "table"
    modes = frozenset(OutputMode)
    keeps = False

    table: str = Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", examples=["counts"])
    """The table's name; Spark reads it as `global_temp.NAME`."""

    def writer(self, identity: SinkIdentity) -> Writer:
        """A writer that keeps rows in this process."""
        from millstream.connectors.memory.writer import MemoryWriter  # noqa: PLC0415 - loads pyarrow

        return MemoryWriter(self, identity)

    def guarantee(self, mode: OutputMode) -> tuple[Guarantee, str]:  # noqa: ARG002 - the same in all
        """At-most-once."""
        return Guarantee.AT_MOST_ONCE, "rows are gone with the process"

    def target(self) -> str:
        """The table's name."""
        return self.table

    def rows(self, limit: int) -> tuple[list[str], list[list[object]]] | None:
        """The newest rows of this process; none in any other."""
        from millstream.connectors.memory.tables import held  # noqa: PLC0415 - loads pyarrow

        table = held(self.table)
        names = list(table.column_names)
        rows = table.slice(max(0, table.num_rows - limit)).to_pylist()
        return names, [[row[name] for name in names] for row in reversed(rows)]
