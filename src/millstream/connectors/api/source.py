"""Base class of sources: what a kind must define. The hooks that it may define are in `source_hooks/`."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar

from millstream.connectors.api.source_hooks.contents import SourceContents
from millstream.connectors.api.source_hooks.inference import SourceInference
from millstream.connectors.api.source_hooks.offsets import SourceOffsets
from millstream.connectors.api.source_hooks.sandbox import SourceSandbox
from millstream.connectors.api.source_hooks.settings import SourceSettings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Source(SourceSettings, SourceOffsets, SourceContents, SourceInference, SourceSandbox):
    """Base of every source kind. A kind is a subclass in `connectors/<system>/source.py`.

    A kind must define `kind`, `main` and `read`.
    """

    can_stream: ClassVar[bool] = True
    """Whether the source can be read as a stream."""
    can_read_once: ClassVar[bool] = False
    """Whether the source can be read once, as a static table."""
    has_payload: ClassVar[bool] = False
    """Whether rows have undecoded bytes in a column `value`, which the spec's `format` and `schema` decode."""
    columns: ClassVar[str | None] = None
    """DDL of the columns of `read`, if independent of the settings; None if the spec's `schema` defines them."""

    @abstractmethod
    def read(self, spark: SparkSession, *, static: bool, schema: str | None) -> DataFrame:
        """Open the source: a stream unless `static`. `schema` is DDL, for kinds that need one."""
