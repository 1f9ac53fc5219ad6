"""foreach_batch sink: pass each batch to a user's function."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from millstream.connectors.api.function_sink import REFERENCE, FunctionSink
from millstream.spec.guarantee import Guarantee
from millstream.spec.secrets.secret import SecretUrl  # noqa: TC001 - pydantic reads it

if TYPE_CHECKING:
    from millstream.connectors.api.writer import SinkIdentity, Writer
    from millstream.spec.output_mode import OutputMode


class ForeachBatchSink(FunctionSink):
    """A Python function that is called with each batch and its id."""

    kind = "foreach_batch"

    function: str = Field(pattern=REFERENCE, examples=["deliveries:store"])
    """Function as `module:function`, relative to the spec's folder; called with the batch and its id."""
    idempotent: bool = False
    """Set to true if the function recognises a repeated batch by its id, and writes it only once."""
    options: dict[str, SecretUrl] = Field(default={}, examples=[{"url": "${POSTGRES_URL}"}])
    """Options for the function, as `batch.options`, such as addresses and paths. Printed without passwords."""

    def writer(self, identity: SinkIdentity) -> Writer:
        """Create a writer that calls the function."""
        from millstream.connectors.foreach_batch.writer import ForeachBatchWriter  # noqa: PLC0415 - for runs

        options = {name: value.reveal() for name, value in self.options.items()}
        return ForeachBatchWriter(self.called, identity, options)

    def guarantee(self, mode: OutputMode) -> tuple[Guarantee, str]:  # noqa: ARG002 - the same in all
        """Return the guarantee that the spec declares for the function."""
        if self.idempotent:
            return (
                Guarantee.EFFECTIVELY_ONCE,
                "the function is declared to write a repeated batch only once",
            )
        return (
            Guarantee.AT_LEAST_ONCE,
            "the function is called again for a repeated batch, with the same batch id",
        )
