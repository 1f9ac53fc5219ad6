"""Pair expected rows with actual rows so that as little as possible differs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

W = TypeVar("W")
G = TypeVar("G")

# The best pairing of the rows without a match takes cubic time, and a longer table is not readable anyway.
MOST = 40


@dataclass(frozen=True)
class RowPairs:
    """The indexes of rows: pairs that match, pairs that differ, and rows without a partner."""

    same: tuple[tuple[int, int], ...]
    differing: tuple[tuple[int, int], ...]
    missing: tuple[int, ...]
    surplus: tuple[int, ...]

    @property
    def is_complete(self) -> bool:
        """Whether every row has a match."""
        return not (self.differing or self.missing or self.surplus)


def match_rows(expected: Sequence[W], actual: Sequence[G], cost: Callable[[W, G], int]) -> RowPairs:
    """Pair each expected row with at most one actual row.

    `cost` is the number of columns in which two rows differ, 0 for a match. The number of matches is maximal; the
    total cost of the other pairs is minimal.
    """
    costs = [[cost(row, candidate) for candidate in actual] for row in expected]
    partners = _maximal_matching(costs, len(actual))
    same = tuple((row, candidate) for row, candidate in enumerate(partners) if candidate is not None)
    unmatched = [row for row, candidate in enumerate(partners) if candidate is None]
    matched = {candidate for _, candidate in same}
    free_candidates = [candidate for candidate in range(len(actual)) if candidate not in matched]
    if len(unmatched) > MOST or len(free_candidates) > MOST:
        unlike = list(zip(unmatched, free_candidates, strict=False))
    else:
        unlike = [
            (unmatched[row], free_candidates[candidate])
            for row, candidate in _cheapest_pairs(
                [[costs[row][candidate] for candidate in free_candidates] for row in unmatched]
            )
        ]
    rows_used, candidates_used = {row for row, _ in unlike}, {candidate for _, candidate in unlike}
    return RowPairs(
        same,
        tuple(sorted(unlike)),
        tuple(row for row in unmatched if row not in rows_used),
        tuple(candidate for candidate in free_candidates if candidate not in candidates_used),
    )


def _maximal_matching(costs: Sequence[Sequence[int]], columns: int) -> list[int | None]:
    """Return the matching column of each row, for the maximal number of matches (Kuhn's augmenting paths)."""
    partner: list[int | None] = [None] * len(costs)
    holder: list[int | None] = [None] * columns
    for start in range(len(costs)):
        # Search breadth first for the shortest path to a column without a partner.
        reached_from: dict[int, int] = {}
        queue, end = [start], None
        for row in queue:
            for column in range(columns):
                if costs[row][column] or column in reached_from:
                    continue
                reached_from[column] = row
                owner = holder[column]
                if owner is None:
                    end = column
                    break
                queue.append(owner)
            if end is not None:
                break
        while end is not None:
            row = reached_from[end]
            partner[row], holder[end], end = end, row, partner[row]
    return partner


def _cheapest_pairs(costs: Sequence[Sequence[int]]) -> list[tuple[int, int]]:
    """Return the maximal set of row and column pairs with the least total cost (Kuhn-Munkres)."""
    if not costs or not costs[0]:
        return []
    if len(costs) > len(costs[0]):
        transposed = [list(column) for column in zip(*costs, strict=True)]
        return [(row_index, column_index) for column_index, row_index in _cheapest_pairs(transposed)]
    rows, columns = len(costs), len(costs[0])
    infinity = float("inf")
    # Indexes start at 1. Column 0 is a placeholder for the row that is being assigned.
    row_potential, column_potential = [0.0] * (rows + 1), [0.0] * (columns + 1)
    row_of_column, previous = [0] * (columns + 1), [0] * (columns + 1)
    for row in range(1, rows + 1):
        row_of_column[0], current_column = row, 0
        least_costs, is_used = [infinity] * (columns + 1), [False] * (columns + 1)
        while row_of_column[current_column]:
            is_used[current_column] = True
            current, step, following = row_of_column[current_column], infinity, 0
            for column in range(1, columns + 1):
                if is_used[column]:
                    continue
                reduced_cost = (
                    costs[current - 1][column - 1] - row_potential[current] - column_potential[column]
                )
                if reduced_cost < least_costs[column]:
                    least_costs[column], previous[column] = reduced_cost, current_column
                if least_costs[column] < step:
                    step, following = least_costs[column], column
            for column in range(columns + 1):
                if is_used[column]:
                    row_potential[row_of_column[column]] += step
                    column_potential[column] -= step
                else:
                    least_costs[column] -= step
            current_column = following
        while current_column:
            row_of_column[current_column] = row_of_column[previous[current_column]]
            current_column = previous[current_column]
    return [
        (row_of_column[column] - 1, column - 1) for column in range(1, columns + 1) if row_of_column[column]
    ]
