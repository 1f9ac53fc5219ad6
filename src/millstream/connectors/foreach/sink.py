"""The foreach sink: each row handed to a function or class of the user, where Spark's tasks run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from millstream.connectors.function import REFERENCE, FunctionSink
from millstream.spec.guarantee import Guarantee

if TYPE_CHECKING:
    from millstream.connectors.sink import SinkIdentity, Writer
    from millstream.spec.mode import OutputMode


class ForeachSink(FunctionSink):
    """A Python function of a row, or a class with open, process and close."""

    kind = "foreach"
    in_tasks = True
    # Under a continuous trigger Spark opens the function's process again for each epoch, and fails.
    flows = frozenset({"real_time"})

    function: str = Field(pattern=REFERENCE, examples=["alerts:Sender"])
    """The function or class as `module:name`, found from the spec's folder."""

    def writer(self, identity: SinkIdentity) -> Writer:
        """A writer that runs the function in tasks."""
        from millstream.connectors.foreach.writer import ForeachWriter  # noqa: PLC0415 - for runs

        return ForeachWriter(self.called, identity)

    def guarantee(self, mode: OutputMode) -> tuple[Guarantee, str]:  # noqa: ARG002 - the same in all
        """At-least-once."""
        return Guarantee.AT_LEAST_ONCE, "the function sees the rows of a repeated batch or task again"
