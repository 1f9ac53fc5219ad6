"""Hooks of a sink for the check of a spec: its settings, and the columns that it accepts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

from millstream.spec.base import Spec

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from millstream.connectors.api.values.problem import Problem
    from millstream.spec.output_mode import OutputMode


class SinkSettings(Spec):
    """Settings of a sink, checked without a connection."""

    refuses_text: ClassVar[str | None] = None
    """Text that stops a batch, in a few words such as `a NUL character`; None if any text is accepted."""
    stores_rows: ClassVar[bool] = True
    """Whether rows still exist after the run."""
    is_case_sensitive: ClassVar[bool] = True
    """Whether settings must use the case of the query's column names."""
    can_roll_back: ClassVar[bool] = False
    """Whether the sink can roll back, so that rejected rows can be separated from the rest of a batch."""
    writes_in_tasks: ClassVar[bool] = False
    """Whether Spark's tasks send rows themselves, so that a task that runs twice sends them twice."""
    flows: ClassVar[frozenset[str]] = frozenset()
    """Triggers without batches under which Spark itself writes to it, row by row. The writer then has `flow`."""

    def functions(self) -> Mapping[str, str]:
        """Return the user's functions as `module:name` relative to the spec's folder, by their field."""
        return {}

    def bound(self, loaded: Mapping[str, Callable[..., Any]]) -> Self:
        """Return the sink with its functions, by field; called before `writer` for kinds with `functions`."""
        return self

    def with_strongest_guarantee(self) -> Self:
        """Return the sink with its strongest guarantee, whatever the cost; itself if there is no stronger one."""
        return self

    def problems(self, mode: OutputMode) -> list[Problem]:
        """Check the settings in this mode, as far as possible without connecting."""
        return []

    def weakening_problems(self, mode: OutputMode) -> list[Problem]:
        """Return valid settings with a drawback, such as less acknowledgement or a shorter ledger."""
        return []

    def record_mode_problems(self) -> list[Problem]:
        """Return settings that need batches, and therefore exclude triggers without batches."""
        return []

    def conflict_cost(self, mode: OutputMode) -> str:
        """Describe the cost of two queries that replace rows of one target, as a clause; empty if there is none."""
        return ""

    def small_batches(self, mode: OutputMode) -> str:
        """Describe how batches of few rows are written, as a clause, if in another way; else an empty string."""
        return ""

    def takes(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return the written columns of a query."""
        return tuple(names)

    def named_columns(self) -> Mapping[str, tuple[str, ...]]:
        """Return the query's columns that settings name, by field."""
        return {}

    def refuses(self, columns: Mapping[str, str]) -> list[Problem]:
        """Check the query's columns, given as names with types in Spark's DDL (`array<string>`)."""
        return []

    @classmethod
    def of_spark(
        cls,
        columns: Mapping[str, str],  # noqa: ARG003 - used by subclasses
        options: Mapping[str, str],  # noqa: ARG003
        partition_columns: tuple[str, ...],  # noqa: ARG003
    ) -> list[Problem]:
        """Return what Spark's own sink of this format would reject at run time in a script.

        `partition_columns` contains the columns of `partitionBy`.
        """
        return []
