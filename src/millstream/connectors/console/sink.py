"""Console sink: print each batch as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from millstream.connectors.api.sink import Sink
from millstream.spec.guarantee import Guarantee
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from millstream.connectors.api.values.sandbox import Sandbox
    from millstream.connectors.api.writer import SinkIdentity, Writer


class ConsoleSink(Sink):
    """A table per batch on standard output, for developing a query."""

    kind = "console"
    main = "num_rows"
    modes = frozenset(OutputMode)
    stores_rows = False

    num_rows: int = Field(default=20, ge=1)
    """Maximum number of rows shown per batch."""
    truncate: bool | int = 20
    """Maximum length of a cell in characters; `false` shows everything, `true` means 20."""

    def writer(self, identity: SinkIdentity) -> Writer:
        """Create a writer that prints."""
        from millstream.connectors.console.writer import ConsoleWriter  # noqa: PLC0415 - checking needs no writer

        return ConsoleWriter(self, identity)

    def guarantee(self, mode: OutputMode) -> tuple[Guarantee, str]:  # noqa: ARG002 - the same in all
        """Guarantee at-least-once."""
        return Guarantee.AT_LEAST_ONCE, "a batch that is replayed after a crash is printed again"

    def in_sandbox(self, sandbox: Sandbox) -> Sink | None:  # noqa: ARG002 - it stores nothing
        """Return the sink itself, because it stores nothing."""
        return self

    def target(self) -> str:
        """Return `stdout`."""
        return "stdout"

    def describe(self) -> str:
        """Describe as `console`."""
        return "console"
