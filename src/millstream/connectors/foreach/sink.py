"""foreach sink: pass each row to a user's function or class, in Spark's tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from millstream.connectors.api.function_sink import REFERENCE, FunctionSink
from millstream.spec.guarantee import Guarantee

if TYPE_CHECKING:
    from millstream.connectors.api.writer import SinkIdentity, Writer
    from millstream.spec.output_mode import OutputMode


class ForeachSink(FunctionSink):
    """A Python function of a row, or a class with open, process and close."""

    kind = "foreach"
    writes_in_tasks = True
    # Under a continuous trigger, Spark restarts the function's process for each epoch, and fails.
    flows = frozenset({"real_time"})

    function: str = Field(pattern=REFERENCE, examples=["alerts:Sender"])
    """Function or class as `module:name`, relative to the spec's folder."""

    def writer(self, identity: SinkIdentity) -> Writer:
        """Create a writer that runs the function in tasks."""
        from millstream.connectors.foreach.writer import ForeachWriter  # noqa: PLC0415 - for runs

        return ForeachWriter(self.called, identity)

    def guarantee(self, mode: OutputMode) -> tuple[Guarantee, str]:  # noqa: ARG002 - the same in all
        """Guarantee at-least-once."""
        return (
            Guarantee.AT_LEAST_ONCE,
            "the function is called again for the rows of a repeated batch or task",
        )
