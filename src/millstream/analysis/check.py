"""The rules of a check: those that read the spec, and those that read the plans that Spark analysed."""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import millstream.analysis.rules as home
from millstream.analysis.allow import allowed
from millstream.analysis.facts import Facts
from millstream.analysis.severity import weighed
from millstream.diagnostics.catalogue import ASKED
from millstream.pipeline.load import in_file_order

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from millstream.analysis.dataflow import PlannedQuery
    from millstream.diagnostics.finding import Finding
    from millstream.pipeline.load import Loaded

    Check = Callable[[Facts], Iterable[Finding]]
    Judge = Callable[[PlannedQuery, Facts | None], Iterable[Finding]]


@dataclass(frozen=True)
class Rule:
    """A rule: `check` reads the spec, `judge` one query's plan; a rule has one of them or both.

    `instead_of` are parts of what Spark says, in its own words, where the rule's error tells the same with its cure.
    """

    code: str
    name: str
    check: Check | None
    judge: Judge | None
    instead_of: tuple[str, ...] = ()


@cache
def rules() -> dict[str, Rule]:
    """The rules by code: `check`, `judge` and `INSTEAD_OF` of each module of the rules' folder."""
    found = {}
    for entry in pkgutil.iter_modules(home.__path__):
        module = importlib.import_module(f"{home.__name__}.{entry.name}")
        check, judge = getattr(module, "check", None), getattr(module, "judge", None)
        instead_of = tuple(getattr(module, "INSTEAD_OF", ()))
        found[module.CODE.code] = Rule(module.CODE.code, module.CODE.name, check, judge, instead_of)
    return dict(sorted(found.items()))


def phrases() -> dict[str, tuple[str, ...]]:
    """By code, the parts of what Spark says that an error of that code stands for."""
    return {code: rule.instead_of for code, rule in rules().items() if rule.instead_of}


# What these refuse would run if it were let through: no comment allows a statement that is not a query, a call
# into the JVM, or a path outside the sources.
NEVER_ALLOWED = frozenset({"MS103", "MS104", "MS105"})


def phase_a(loaded: Loaded) -> list[Finding]:
    """What the rules find in a loaded spec without Spark, in file order, less what the spec allows with a reason.

    Gives nothing when the spec has no model: its own findings say why. Runs none of the user's code.
    """
    return settled(loaded, of_spec(loaded), complete=False)


def of_spec(loaded: Loaded) -> list[Finding]:
    """What the rules find in a loaded spec without Spark."""
    if loaded.pipeline is None:
        return []
    facts = Facts(loaded.pipeline, loaded.places)
    return [found for rule in rules().values() if rule.check for found in rule.check(facts)]


def of_plans(queries: Sequence[PlannedQuery], loaded: Loaded | None = None) -> list[Finding]:
    """What the rules find in planned queries; `loaded` is the spec they come from, where there is one."""
    facts = Facts(loaded.pipeline, loaded.places) if loaded and loaded.pipeline else None
    judges = [rule.judge for rule in rules().values() if rule.judge]
    return list(
        dict.fromkeys(found for query in queries for judge in judges for found in judge(query, facts))
    )


def settled(
    loaded: Loaded, found: Sequence[Finding], *, complete: bool, asked: bool = False
) -> list[Finding]:
    """Findings in file order, less those that a comment allows with a reason, as grave as the spec says.

    `complete` when plans were judged too, `asked` when the servers were: only then is a comment idle that allows
    what a plan or a server shows.
    """
    judged = {code for code, rule in rules().items() if complete or rule.judge is None}
    judged |= ASKED if asked else set()
    known = {*rules(), *ASKED}
    kept = allowed(found, loaded.texts, known - NEVER_ALLOWED, judged)
    if loaded.pipeline is not None:
        kept = weighed(kept, loaded.pipeline.rules, loaded.places, known, NEVER_ALLOWED)
    return in_file_order(kept, loaded.places.file)
