"""The console sink: each batch printed as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from millstream.connectors.sink import Sink, SinkIdentity, Writer
from millstream.spec.guarantee import Guarantee
from millstream.spec.mode import OutputMode

if TYPE_CHECKING:
    from millstream.connectors.elsewhere import Place


class ConsoleSink(Sink):
    """A table a batch on standard output, to look at a query while it is written."""

    kind = "console"
    main = "num_rows"
    modes = frozenset(OutputMode)
    keeps = False

    num_rows: int = Field(default=20, ge=1)
    """At most this many rows of a batch are shown."""
    truncate: bool | int = 20
    """Longest text of a cell, in characters; false shows all of it, true means 20."""

    def writer(self, identity: SinkIdentity) -> Writer:
        """A writer that prints."""
        from millstream.connectors.console.writer import ConsoleWriter  # noqa: PLC0415 - checking needs no writer

        return ConsoleWriter(self, identity)

    def guarantee(self, mode: OutputMode) -> tuple[Guarantee, str]:  # noqa: ARG002 - the same in all
        """At-least-once."""
        return Guarantee.AT_LEAST_ONCE, "a batch that is replayed after a crash is printed again"

    def elsewhere(self, place: Place) -> Sink | None:  # noqa: ARG002 - it leaves nothing
        """Itself: it leaves nothing behind."""
        return self

    def target(self) -> str:
        """Standard output."""
        return "stdout"

    def describe(self) -> str:
        """`console`."""
        return "console"
