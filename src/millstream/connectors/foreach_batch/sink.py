"""The foreach_batch sink: each batch handed to a function of the user."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from millstream.connectors.function import REFERENCE, FunctionSink
from millstream.spec.guarantee import Guarantee
from millstream.spec.secret import SecretUrl  # noqa: TC001 - pydantic reads it

if TYPE_CHECKING:
    from millstream.connectors.sink import SinkIdentity, Writer
    from millstream.spec.mode import OutputMode


class ForeachBatchSink(FunctionSink):
    """A Python function that is called with each batch and its number."""

    kind = "foreach_batch"

    function: str = Field(pattern=REFERENCE, examples=["deliveries:store"])
    """The function as `module:function`, found from the spec's folder; called with the batch and its number."""
    idempotent: bool = False
    """Say true when the function tells by the batch's number what it has written, and writes it once."""
    options: dict[str, SecretUrl] = Field(default={}, examples=[{"url": "${POSTGRES_URL}"}])
    """What the function is to know, as `batch.options`: addresses, paths. Printed without passwords."""

    def writer(self, identity: SinkIdentity) -> Writer:
        """A writer that calls the function."""
        from millstream.connectors.foreach_batch.writer import ForeachBatchWriter  # noqa: PLC0415 - for runs

        options = {name: value.reveal() for name, value in self.options.items()}
        return ForeachBatchWriter(self.called, identity, options)

    def guarantee(self, mode: OutputMode) -> tuple[Guarantee, str]:  # noqa: ARG002 - the same in all
        """What the spec says of the function."""
        if self.idempotent:
            return (
                Guarantee.EFFECTIVELY_ONCE,
                "the function is declared to write a batch that comes again once",
            )
        return Guarantee.AT_LEAST_ONCE, "the function sees a repeated batch again, with the same number"
