"""A source has no batch limit, so that the first batch contains the whole topic."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.rule_context import Code

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.job_settings import JobSettings
    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


def check_settings(settings: JobSettings) -> Iterator[Finding]:
    """Check streams that a micro-batch query reads into a sink that stores rows.

    A query into the console is a trial. The trigger `once` reads everything in one batch, whatever the limit, and
    the triggers without batches ignore it.
    """
    for source in settings.unlimited:
        yield CODE.warning(
            f"source '{source.name}': the first batch contains {source.first_batch}",
            source.span,
            why="this batch may take hours or too much memory, and after a crash it starts from the beginning, "
            "because it is committed only at its end; the same happens with the records that arrive "
            "during a long stop",
            fix=f"limit the batch size, for example with {source.limit}",
            edit=source.edit,
            query=source.query,
        )
