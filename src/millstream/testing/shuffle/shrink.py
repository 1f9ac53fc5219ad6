"""Shrink a failing split to the smallest that still fails: fewest batches, restarts and rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from millstream.testing.shuffle.splits import SplitBatch, remove_items

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from millstream.testing.shuffle.splits import Split

# One try runs the split and computes the batch result of its rows, which takes about a second.
TRIES = 60
# One batch is no split. A difference in one batch is reported too, and two batches show it.
FEWEST = 2


@dataclass(frozen=True)
class ShrunkSplit:
    """The smallest failing split that was found."""

    split: Split
    tries: int
    is_complete: bool
    """Whether removing any single batch, restart or row makes it pass; False if the tries ran out."""


def shrink(split: Split, fails: Callable[[Split], bool], tries: int = TRIES) -> ShrunkSplit:
    """Shrink a failing split while `fails` returns true. Calls `fails` at most `tries` times.

    The order of arrival is preserved. Delta debugging (Zeller and Hildebrandt, 2002) first removes batches, because
    each batch costs time in all later tries, then restarts and crashes, then rows.
    """
    search = _Search(fails, tries)
    best, smaller = split, True
    while smaller and not search.is_spent:
        before = best
        for candidates in (_two_batches, _merge_neighbours, _remove_restarts):
            best = search.descend(best, candidates)
        best = _remove_rows(best, search)
        smaller = best != before
    return ShrunkSplit(_sort_rows(best, search), search.tries_made, not search.is_spent)


class _Search:
    """Tests whether splits fail: each split once, and no more tries than allowed."""

    def __init__(self, fails: Callable[[Split], bool], tries: int) -> None:
        self._fails = fails
        self._tries = tries
        self._results: dict[Split, bool] = {}

    @property
    def tries_made(self) -> int:
        return len(self._results)

    @property
    def is_spent(self) -> bool:
        return self.tries_made >= self._tries

    def fails(self, split: Split) -> bool:
        if len(split) < FEWEST:
            return False
        if split not in self._results:
            if self.is_spent:
                return False
            self._results[split] = self._fails(split)
        return self._results[split]

    def descend(self, best: Split, candidates: Callable[[Split], Iterator[Split]]) -> Split:
        """Repeatedly replace the best split with its first failing candidate, until none fails."""
        while (
            candidate := next((split for split in candidates(best) if self.fails(split)), None)
        ) is not None:
            best = candidate
        return best


def _two_batches(split: Split) -> Iterator[Split]:
    """Yield splits into two batches at each existing cut, first without restarts and crashes."""
    if len(split) <= FEWEST:
        return
    pairs = [(_merge(split[:at]), _merge(split[at:])) for at in range(1, len(split))]
    for first, second in pairs:
        yield replace(first, has_restart=False, crash=None), replace(second, has_restart=False, crash=None)
    yield from (pair for pair in pairs if _has_restart_or_crash(pair))


def _merge_neighbours(split: Split) -> Iterator[Split]:
    """Yield the split with each pair of neighbours merged."""
    if len(split) > FEWEST:
        for at in range(len(split) - 1):
            yield (*split[:at], _merge(split[at : at + 2]), *split[at + 2 :])


def _remove_restarts(split: Split) -> Iterator[Split]:
    """Yield the split without restarts and crashes, then with each one removed."""
    if _has_restart_or_crash(split):
        yield tuple(replace(part, has_restart=False, crash=None) for part in split)
    for at, part in enumerate(split):
        for calm in (replace(part, has_restart=False), replace(part, crash=None)):
            if calm != part:
                yield (*split[:at], calm, *split[at + 1 :])


def _remove_rows(split: Split, search: _Search) -> Split:
    """Remove rows: halves, quarters and so on, down to single rows."""
    best, pieces = split, 2
    while True:
        remaining = [item for part in best for item in part.items]
        if len(remaining) <= FEWEST:
            return best
        size = max(1, len(remaining) // pieces)
        chunks = [remaining[at : at + size] for at in range(0, len(remaining), size)]
        smaller = next(
            (candidate for chunk in chunks if search.fails(candidate := remove_items(best, chunk))), None
        )
        if smaller is not None:
            best, pieces = smaller, max(2, pieces - 1)
        elif size == 1:
            return best
        else:
            pieces = min(len(remaining), pieces * 2)


def _sort_rows(split: Split, search: _Search) -> Split:
    """Sort the rows of each batch in the case's order, which is easier to read, if that split fails too."""
    ordered = tuple(replace(part, items=tuple(sorted(part.items))) for part in split)
    return ordered if ordered != split and search.fails(ordered) else split


def _merge(parts: Split) -> SplitBatch:
    """Merge batches: with the restart of the first, and the first crash of any."""
    crash = next((part.crash for part in parts if part.crash), None)
    return SplitBatch(tuple(item for part in parts for item in part.items), parts[0].has_restart, crash)


def _has_restart_or_crash(split: Split) -> bool:
    return any(part.has_restart or part.crash for part in split)
