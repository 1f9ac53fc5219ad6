"""Base class of sinks: what a kind must define. The hooks that it may define are in `sink_hooks/`."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar

from millstream.connectors.api.sink_hooks.backfill import SinkBackfill
from millstream.connectors.api.sink_hooks.contents import SinkContents
from millstream.connectors.api.sink_hooks.row_semantics import RowSemantics
from millstream.connectors.api.sink_hooks.sandbox import SinkSandbox
from millstream.connectors.api.sink_hooks.settings import SinkSettings

if TYPE_CHECKING:
    from millstream.connectors.api.writer import SinkIdentity, Writer
    from millstream.spec.guarantee import Guarantee
    from millstream.spec.output_mode import OutputMode


class Sink(SinkSettings, RowSemantics, SinkContents, SinkBackfill, SinkSandbox):
    """Base of every sink kind. A kind is a subclass in `connectors/<system>/sink.py`.

    A kind must define `kind`, `main`, `modes`, `guarantee`, `target` and `writer`, and its writer `write`.
    """

    main: ClassVar[str]
    """Field that is set when the value in the spec is a plain string."""
    modes: ClassVar[frozenset[OutputMode]]
    """Output modes that this kind supports with any settings."""
    task_packages: ClassVar[tuple[str, ...]] = ()
    """Python packages that the writer imports in tasks, which the executors of a cluster must therefore have."""
    is_written_without_spark: ClassVar[bool] = False
    """Whether `path` is a file that the driver itself opens, so that it is on this machine in any case."""
    accepts_rows: ClassVar[bool] = False
    """Whether some of its writers can write rows from the driver's memory (`Writer.write_rows`)."""

    @abstractmethod
    def writer(self, identity: SinkIdentity) -> Writer:
        """Create the writer. Its module is imported here because it may be slow to import."""

    @abstractmethod
    def guarantee(self, mode: OutputMode) -> tuple[Guarantee, str]:
        """Return the strongest guarantee in this mode, given a replayable source, and the reason."""
