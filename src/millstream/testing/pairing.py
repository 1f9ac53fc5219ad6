"""Pair rows that were wanted with rows that came, so that as little as possible differs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

W = TypeVar("W")
G = TypeVar("G")

# The best pairing of what is left takes the cube of its size; beyond this many rows a side nobody reads it.
MOST = 40


@dataclass(frozen=True)
class Paired:
    """Numbers of rows: those that fit each other, those that were put side by side, and those alone."""

    same: tuple[tuple[int, int], ...]
    unlike: tuple[tuple[int, int], ...]
    missing: tuple[int, ...]
    surplus: tuple[int, ...]

    @property
    def whole(self) -> bool:
        """Does each row fit another?"""
        return not (self.unlike or self.missing or self.surplus)


def pair(wanted: Sequence[W], got: Sequence[G], cost: Callable[[W, G], int]) -> Paired:
    """Pair each wanted row with at most one that came.

    `cost` is in how many places two rows differ, 0 for rows that fit. As many rows fit as can; of the others, the
    sum of what differs is the least.
    """
    costs = [[cost(one, other) for other in got] for one in wanted]
    fits = _fitting(costs, len(got))
    same = tuple((one, other) for one, other in enumerate(fits) if other is not None)
    left = [one for one, other in enumerate(fits) if other is None]
    taken = {other for _, other in same}
    free = [other for other in range(len(got)) if other not in taken]
    if len(left) > MOST or len(free) > MOST:
        unlike = list(zip(left, free, strict=False))
    else:
        unlike = [
            (left[one], free[other])
            for one, other in _cheapest([[costs[one][other] for other in free] for one in left])
        ]
    ones, others = {one for one, _ in unlike}, {other for _, other in unlike}
    return Paired(
        same,
        tuple(sorted(unlike)),
        tuple(one for one in left if one not in ones),
        tuple(other for other in free if other not in others),
    )


def _fitting(costs: Sequence[Sequence[int]], many: int) -> list[int | None]:
    """For each row the one it fits, as many pairs as there can be: paths that change partners (Kuhn)."""
    partner: list[int | None] = [None] * len(costs)
    holder: list[int | None] = [None] * many
    for start in range(len(costs)):
        # Breadth first, for the shortest path to a row that nobody holds.
        came: dict[int, int] = {}
        queue, end = [start], None
        for here in queue:
            for other in range(many):
                if costs[here][other] or other in came:
                    continue
                came[other] = here
                owner = holder[other]
                if owner is None:
                    end = other
                    break
                queue.append(owner)
            if end is not None:
                break
        while end is not None:
            here = came[end]
            partner[here], holder[end], end = end, here, partner[here]
    return partner


def _cheapest(costs: Sequence[Sequence[int]]) -> list[tuple[int, int]]:
    """The pairs of rows and columns whose costs have the least sum, as many as there can be (Kuhn-Munkres)."""
    if not costs or not costs[0]:
        return []
    if len(costs) > len(costs[0]):
        turned = [list(column) for column in zip(*costs, strict=True)]
        return [(one, other) for other, one in _cheapest(turned)]
    rows, columns = len(costs), len(costs[0])
    high = float("inf")
    # Numbered from 1; column 0 stands for the row that is being placed.
    of_row, of_column = [0.0] * (rows + 1), [0.0] * (columns + 1)
    held, way = [0] * (columns + 1), [0] * (columns + 1)
    for row in range(1, rows + 1):
        held[0], at = row, 0
        least, used = [high] * (columns + 1), [False] * (columns + 1)
        while held[at]:
            used[at] = True
            here, step, following = held[at], high, 0
            for column in range(1, columns + 1):
                if used[column]:
                    continue
                rest = costs[here - 1][column - 1] - of_row[here] - of_column[column]
                if rest < least[column]:
                    least[column], way[column] = rest, at
                if least[column] < step:
                    step, following = least[column], column
            for column in range(columns + 1):
                if used[column]:
                    of_row[held[column]] += step
                    of_column[column] -= step
                else:
                    least[column] -= step
            at = following
        while at:
            held[at] = held[way[at]]
            at = way[at]
    return [(held[column] - 1, column - 1) for column in range(1, columns + 1) if held[column]]
