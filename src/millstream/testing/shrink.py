"""From a split that fails to the smallest that still does: fewest batches, no needless restart, fewest rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from millstream.testing.splits import Part, without

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from millstream.testing.splits import Split

# One try plays the split and computes the batch answer of its rows: about a second.
TRIES = 60
# With one batch nothing is split: what differs there is told, and two batches show it.
FEWEST = 2


@dataclass(frozen=True)
class Shrunk:
    """The smallest split found that fails."""

    split: Split
    tries: int
    complete: bool
    """Nothing smaller fails, as far as single batches, restarts and rows are taken away; False when tries ran out."""


def shrink(split: Split, fails: Callable[[Split], bool], tries: int = TRIES) -> Shrunk:
    """Make a failing split smaller while `fails` holds, which is asked at most `tries` times.

    Order of arrival is kept. Delta debugging (Zeller and Hildebrandt, 2002) over batches first, as each of them
    costs time in all tries that follow, then restarts and crashes, then rows.
    """
    search = _Search(fails, tries)
    best, smaller = split, True
    while smaller and not search.spent:
        before = best
        for candidates in (_two, _merged, _calmer):
            best = search.descend(best, candidates)
        best = _fewer(best, search)
        smaller = best != before
    return Shrunk(_in_order(best, search), search.asked, not search.spent)


class _Search:
    """Asks whether a split fails, each split once and not more often than allowed."""

    def __init__(self, fails: Callable[[Split], bool], tries: int) -> None:
        self._fails = fails
        self._tries = tries
        self._known: dict[Split, bool] = {}

    @property
    def asked(self) -> int:
        return len(self._known)

    @property
    def spent(self) -> bool:
        return self.asked >= self._tries

    def fails(self, split: Split) -> bool:
        if len(split) < FEWEST:
            return False
        if split not in self._known:
            if self.spent:
                return False
            self._known[split] = self._fails(split)
        return self._known[split]

    def descend(self, best: Split, candidates: Callable[[Split], Iterator[Split]]) -> Split:
        """The first candidate that fails, then the first of its own, until none does."""
        while (found := next((one for one in candidates(best) if self.fails(one)), None)) is not None:
            best = found
        return best


def _two(split: Split) -> Iterator[Split]:
    """All that came in two batches, cut where the split is: at first without a restart or crash."""
    if len(split) <= FEWEST:
        return
    pairs = [(_joined(split[:at]), _joined(split[at:])) for at in range(1, len(split))]
    for first, second in pairs:
        yield replace(first, restart=False, crash=None), replace(second, restart=False, crash=None)
    yield from (pair for pair in pairs if _told(pair))


def _merged(split: Split) -> Iterator[Split]:
    """Two neighbours as one batch."""
    if len(split) > FEWEST:
        for at in range(len(split) - 1):
            yield (*split[:at], _joined(split[at : at + 2]), *split[at + 2 :])


def _calmer(split: Split) -> Iterator[Split]:
    """One restart or crash less; at first none at all."""
    if _told(split):
        yield tuple(replace(part, restart=False, crash=None) for part in split)
    for at, part in enumerate(split):
        for calm in (replace(part, restart=False), replace(part, crash=None)):
            if calm != part:
                yield (*split[:at], calm, *split[at + 1 :])


def _fewer(split: Split, search: _Search) -> Split:
    """Rows taken away: in halves, quarters and so on down to single ones."""
    best, pieces = split, 2
    while True:
        left = [one for part in best for one in part.items]
        if len(left) <= FEWEST:
            return best
        size = max(1, len(left) // pieces)
        chunks = [left[at : at + size] for at in range(0, len(left), size)]
        found = next((cut for chunk in chunks if search.fails(cut := without(best, chunk))), None)
        if found is not None:
            best, pieces = found, max(2, pieces - 1)
        elif size == 1:
            return best
        else:
            pieces = min(len(left), pieces * 2)


def _in_order(split: Split, search: _Search) -> Split:
    """The rows of each batch in the case's order, which is easier to read, where that fails too."""
    tidy = tuple(replace(part, items=tuple(sorted(part.items))) for part in split)
    return tidy if tidy != split and search.fails(tidy) else split


def _joined(parts: Split) -> Part:
    """Batches as one: begun as the first one is, dying where any of them does."""
    crash = next((part.crash for part in parts if part.crash), None)
    return Part(tuple(one for part in parts for one in part.items), parts[0].restart, crash)


def _told(split: Split) -> bool:
    return any(part.restart or part.crash for part in split)
