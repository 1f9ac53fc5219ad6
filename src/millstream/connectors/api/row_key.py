"""Check the settings of a sink that finds its rows by a key."""

from __future__ import annotations

from millstream.connectors.api.values.problem import Problem
from millstream.spec.output_mode import OutputMode


def key_problems(kind: str, mode: OutputMode, *, has_key: bool, deletes: bool, merges: bool) -> list[Problem]:
    """Return the problems of a sink of a kind whose mode or deletions need a key that it does not have.

    `has_key`: its rows have a key, `merges`: by `merge_on`; `deletes`: it has `delete_when`.
    """
    problems = []
    if mode is OutputMode.UPDATE and not has_key:
        problems.append(
            Problem(
                None,
                f"{kind} in update mode needs the key columns of a row",
                "add merge_on with the columns that identify a row",
                "in update mode a row is written again whenever it changes; without a key, the sink would keep "
                "every version",
            )
        )
    if deletes and (not merges or mode is OutputMode.COMPLETE):
        problems.append(
            Problem(
                "delete_when",
                "delete_when needs merge_on, and a mode other than complete",
                "add merge_on with the columns of the key",
                "the row to delete is found by its key",
            )
        )
    return problems
