"""Dead letters in a Delta table, written with the same guards as any sink."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from millstream.connectors.letters import Box, Keeper, Letter
from millstream.spec.location import Location

if TYPE_CHECKING:
    from datetime import datetime

    from millstream.connectors.sink import SinkIdentity


class DeltaBox(Box):
    """A Delta table, a row a letter."""

    kind = "delta"
    main = "path"
    plain = True

    path: Location = Field(examples=["lake/dead_letters"])
    """The table's folder, relative to the spec's, or a URI that Spark can read."""

    def keeper(self, identity: SinkIdentity) -> Keeper:
        """Few letters are committed by the driver, many by tasks."""
        from millstream.connectors.delta.keeping import DeltaKeeper  # noqa: PLC0415 - loads large libraries

        return DeltaKeeper(self.path, identity)

    def all(self) -> list[Letter]:
        """The table's rows."""
        from millstream.connectors.delta.keeping import kept  # noqa: PLC0415 - as above

        return kept(self.path)

    def purge(self, before: datetime | None, source: str | None) -> int:
        """Delete rows, and the files that held them."""
        from millstream.connectors.delta.keeping import purge  # noqa: PLC0415 - as above

        purge(self.path, before, source)
        return 0

    def target(self) -> str:
        """The table's folder."""
        return str(self.path)

    def probe(self) -> None:
        """Raises `NotReady` when the folder cannot be written."""
        from millstream.connectors.delta.place import writable  # noqa: PLC0415 - checking asks nobody

        writable(self.path)
