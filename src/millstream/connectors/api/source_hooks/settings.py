"""Hooks of a source for the check of a spec: its settings, and the records that they omit."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from millstream.connectors.api.values.problem import Problem
from millstream.spec.base import Spec

if TYPE_CHECKING:
    from millstream.connectors.api.values.offsets import BatchLimit


class SourceSettings(Spec):
    """Settings of a source, checked without a connection."""

    is_generated: ClassVar[bool] = False
    """Whether the rows are generated for trying out a pipeline, so that nothing can be lost."""
    is_reread_each_batch: ClassVar[bool] = False
    """Whether each batch reads the current version of a static table, instead of the version at the start."""
    flows: ClassVar[frozenset[str]] = frozenset()
    """Triggers without batches with which Spark reads it: `continuous`, `real_time`."""
    bounds: ClassVar[tuple[str, ...]] = ()
    """Fields that concern batches: their size and their number of tasks."""

    def problems(self) -> list[Problem]:
        """Check the settings, as far as possible without connecting."""
        return []

    def record_mode_problems(self) -> list[Problem]:
        """Return settings that concern batches, and have no effect with triggers without batches."""
        set_fields = (name for name in self.bounds if getattr(self, name) is not None)
        return [
            Problem(name, f"{name} concerns batches, and this trigger has none", "remove it")
            for name in set_fields
        ]

    def begins(self) -> str:
        """Describe where a query without a checkpoint starts, as a clause after the source's name; may be empty."""
        return ""

    def omission_problems(self) -> list[Problem]:
        """Return settings that omit records on purpose, without reporting each."""
        return []

    def data_loss_problems(self) -> list[Problem]:
        """Return settings with which records are skipped silently."""
        return []

    def surplus(self) -> list[Problem]:
        """Return settings with which unintended records are read, such as those of aborted transactions."""
        return []

    def has_batch_limit(self) -> bool:
        """Return whether the size of a batch is limited."""
        return False

    def batch_limit(self) -> BatchLimit | None:
        """Return a limit for the first batch; None if there is one, or if the query starts at the end."""
        return None

    def may_read_newest_first(self) -> bool:
        """Return whether an earlier batch may contain later records."""
        return False

    def removes_read_files(self) -> bool:
        """Return whether records are removed once a query has read them, so that another query may miss them."""
        return False
