"""Dead letters in a Delta table, written exactly once like the batches of a sink."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from millstream.connectors.api.dead_letters import DeadLetter, DeadLetterStore, DeadLetterWriter, Group
from millstream.spec.location import Location

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from datetime import datetime

    from millstream.connectors.api.writer import SinkIdentity


class DeltaDeadLetterStore(DeadLetterStore):
    """A Delta table with one row per dead letter."""

    kind = "delta"
    main = "path"
    is_default = True

    path: Location = Field(examples=["lake/dead_letters"])
    """Folder of the table, relative to the spec's folder, or a URI that Spark can read."""

    def keeper(self, identity: SinkIdentity) -> DeadLetterWriter:
        """Create a writer: the driver commits a few dead letters, tasks commit many."""
        from millstream.connectors.delta.dead_letter_writer import DeltaDeadLetterWriter  # noqa: PLC0415 - loads large libraries

        return DeltaDeadLetterWriter(self.path, identity)

    def all(self) -> Iterator[DeadLetter]:
        """Read the table's rows."""
        from millstream.connectors.delta.dead_letter_table import read_rows  # noqa: PLC0415 - as above

        return read_rows(self.path)

    def latest(self, limit: int, sources: Sequence[str] = ()) -> list[DeadLetter]:
        """Read the rows of the newest files, chosen by the log's statistics."""
        from millstream.connectors.delta.dead_letter_table import read_latest  # noqa: PLC0415 - as above

        return read_latest(self.path, limit, sources)

    def counts(self, before: datetime | None = None) -> Counter[Group]:
        """Count with a query that reads three columns."""
        from millstream.connectors.delta.dead_letter_table import count_by_group  # noqa: PLC0415 - as above

        return count_by_group(self.path, before)

    def purge(self, before: datetime | None, source: str | None) -> int:
        """Delete rows, and the files that contained them."""
        from millstream.connectors.delta.dead_letter_table import purge  # noqa: PLC0415 - as above

        purge(self.path, before, source)
        return 0

    def delete_sent(self, source: str, written: Mapping[str, Collection[datetime]]) -> int:
        """Delete rows, and the files that contained them."""
        from millstream.connectors.delta.dead_letter_table import delete_sent  # noqa: PLC0415 - as above

        delete_sent(self.path, source, written)
        return 0

    def change_mark(self) -> object:
        """Return the newest commit of a local table, whose log has one file for each. Older ones are deleted."""
        folder = self.path.local
        return (
            None
            if folder is None
            else max((file.name for file in (folder / "_delta_log").glob("*.json")), default="")
        )

    def target(self) -> str:
        """Return the table's folder."""
        return str(self.path)

    def probe(self) -> None:
        """Raise `NotReady` if the folder cannot be written, or `deadletter` cannot read it."""
        from millstream.connectors.delta.commit.delta_rs_paths import require_delta_rs  # noqa: PLC0415 - as below
        from millstream.connectors.delta.folder_check import require_writable  # noqa: PLC0415 - checking does not connect

        require_writable(self.path)
        require_delta_rs(self.path)
