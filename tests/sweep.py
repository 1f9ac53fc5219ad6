"""How much of a sweep runs: a part in which each value occurs, or with `MILLSTREAM_SWEEP=all` the whole of it.

A sweep is a test that goes through a matrix: kinds, modes, failpoints, drawn plans, examples. `make test` runs the
part, `make test-all` the whole. A test marked `sweep` runs for the fewest of its parameters in which each value of
each feature occurs. A feature is a parameter's name, a tuple of names, or what the function `by` gives for the
parameters that it names:

    @pytest.mark.sweep("kind", ("mode", "point"))
    @pytest.mark.sweep(by=lambda case: [case.kind, ("in mode", case.mode)])

If some parameters take much longer than others, the function `cost` says how long, in any unit: of two that have the
same values the cheaper one runs.

The part is the same on every machine and differs from test to test, so that many tests over one matrix meet in all
of it. What is left out is counted as deselected; a test that is named with its parameters (`file.py::test[id]`) runs.
"""

from __future__ import annotations

import hashlib
import os
from collections import defaultdict
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Sequence

_VARIABLE = "MILLSTREAM_SWEEP"
WHOLE = os.environ.get(_VARIABLE, "part") == "all"

Case = TypeVar("Case")


def covering(
    cases: Sequence[Case],
    features: Callable[[Case], Iterable[Hashable]],
    name: str,
    cost: Callable[[Case], float] = lambda _: 1,
) -> list[Case]:
    """The cheapest cases, about, in which each feature of any of them occurs; all of them in a whole run.

    Greedy, the case with most features for its cost that were not met yet first; `name` says which of two equals.
    """
    if WHOLE:
        return list(cases)
    left = {at: set(features(case)) for at, case in enumerate(cases)}
    chosen = []
    while left:
        best = max(
            left,
            key=lambda at: (
                len(left[at]) / cost(cases[at]),
                hashlib.sha256(f"{name}/{at}".encode()).digest(),
            ),
        )
        met = left.pop(best)
        if not met:
            break
        chosen.append(best)
        left = {at: rest - met for at, rest in left.items()}
    return [cases[at] for at in sorted(chosen)]


def size(part: int, whole: int, variable: str) -> int:
    """How many of what is drawn or repeated: `variable` of the environment says another number."""
    return int(os.environ.get(variable, whole if WHOLE else part))


def pytest_configure(config: pytest.Config) -> None:
    for line in (
        "sweep(*features, by=None, cost=None): runs for a part of its parameters; see tests/sweep.py",
        "kills(number): kills so many drivers, workers or servers of a cluster; all of these together: -m kills",
        "whole: runs in whole sweeps alone, as another test notices the same",
        "slow: takes about a second of CPU or starts processes, so that `make check` leaves it out",
    ):
        config.addinivalue_line("markers", line)
    if os.environ.get(_VARIABLE, "part") not in ("part", "all"):
        raise pytest.UsageError(f"{_VARIABLE} takes part or all")


def pytest_report_header() -> str:
    return "sweeps: whole" if WHOLE else f"sweeps: in part; {_VARIABLE}=all runs them whole"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    names = any("[" in argument for argument in config.args)
    if WHOLE or names:
        return
    out = _left_out(items)
    if out:
        config.hook.pytest_deselected(items=[item for item in items if item in out])
        items[:] = [item for item in items if item not in out]


def pytest_report_collectionfinish(items: list[pytest.Item]) -> list[str]:
    kills = sum(mark.args[0] for item in items for mark in item.iter_markers("kills"))
    return [f"kills on a cluster: {kills}"] if kills else []


def _left_out(items: list[pytest.Item]) -> set[pytest.Item]:
    out = {item for item in items if item.get_closest_marker("whole")}
    tests: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item not in out and item.get_closest_marker("sweep"):
            tests[item.nodeid.partition("[")[0]].append(item)
    for name, actual in tests.items():
        out.update(set(actual) - set(covering(actual, _features, name, _cost)))
    return out


def _features(item: Any) -> set[Hashable]:
    mark = item.get_closest_marker("sweep")
    values = item.callspec.params
    names = [name if isinstance(name, tuple) else (name,) for name in mark.args]
    actual: set[Hashable] = {(name, *(values[entry] for entry in name)) for name in names}
    if by := mark.kwargs.get("by"):
        actual.update(_call(by, values))
    return actual


def _cost(item: Any) -> float:
    cost = item.get_closest_marker("sweep").kwargs.get("cost")
    return 1 if cost is None else _call(cost, item.callspec.params)


def _call(function: Callable[..., Any], values: dict[str, Any]) -> Any:
    """What a function gives for the parameters that it names."""
    expected = function.__code__.co_varnames[: function.__code__.co_argcount]
    return function(*(values[name] for name in expected))
