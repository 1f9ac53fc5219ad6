"""Facts about Delta that the rest of the package reads through the registry."""

from __future__ import annotations

from millstream.connectors.api.system import System
from millstream.connectors.delta.commit.commit_lock import LOCK_FILE

DELTA = System(
    failpoints={
        "delta.before": "its rows are computed, and the table's log does not have it",
        "delta.committed": "the table's log has it, and the run has no confirmation yet",
    },
    undecided="delta.before",
    commit_lock=LOCK_FILE,
)
