"""Run the rules of a check: those that read the spec, and those that read the plans that Spark analysed."""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import millstream.analysis.rules as home
from millstream.analysis.rule_context import Facts
from millstream.analysis.severity import apply_severities
from millstream.analysis.spec_settings import read_settings
from millstream.analysis.suppressions import apply_suppressions
from millstream.diagnostics.spec_codes import ASKED
from millstream.pipeline.spec_file import sort_findings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from millstream.analysis.job_settings import JobSettings
    from millstream.analysis.query.plan_model import PlannedQuery
    from millstream.diagnostics.finding import Finding
    from millstream.pipeline.spec_file import LoadedSpec

    Check = Callable[[Facts], Iterable[Finding]]
    CheckSettings = Callable[[JobSettings], Iterable[Finding]]
    Judge = Callable[[PlannedQuery, Facts | None], Iterable[Finding]]


@dataclass(frozen=True)
class Rule:
    """A rule with a `check` that reads the spec, a `judge` that reads one query's plan, or both.

    The `check_settings` of a rule reads the settings of a spec or of a script.

    `instead_of` are phrases of Spark's messages that the rule's error replaces, because it also gives the fix.
    """

    code: str
    name: str
    check: Check | None
    judge: Judge | None
    check_settings: CheckSettings | None = None
    instead_of: tuple[str, ...] = ()


@cache
def load_rules() -> dict[str, Rule]:
    """Load the rules by code: the functions and `INSTEAD_OF` of each module in `rules/`."""
    rules_by_code = {}
    for entry in pkgutil.iter_modules(home.__path__):
        module = importlib.import_module(f"{home.__name__}.{entry.name}")
        check, judge = getattr(module, "check", None), getattr(module, "judge", None)
        instead_of = tuple(getattr(module, "INSTEAD_OF", ()))
        of_settings = getattr(module, "check_settings", None)
        rules_by_code[module.CODE.code] = Rule(
            module.CODE.code, module.CODE.name, check, judge, of_settings, instead_of
        )
    return dict(sorted(rules_by_code.items()))


def phrases_by_code() -> dict[str, tuple[str, ...]]:
    """Return, by code, the phrases of Spark's messages that an error of that code replaces."""
    return {code: rule.instead_of for code, rule in load_rules().items() if rule.instead_of}


# A suppressed finding of these codes would run: no comment may allow a statement that is not a query, a call
# into the JVM, or a path outside the sources.
NEVER_ALLOWED = frozenset({"MS103", "MS104", "MS105"})


def check_spec(loaded: LoadedSpec) -> list[Finding]:
    """Return the findings of a loaded spec without Spark, in file order, except those that comments suppress.

    Return nothing if the spec could not be loaded: its own findings give the reason. Runs no user code.
    """
    return finish_findings(loaded, run_spec_rules(loaded), complete=False)


def run_spec_rules(loaded: LoadedSpec) -> list[Finding]:
    """Run the rules that need no Spark on a loaded spec."""
    if loaded.pipeline is None:
        return []
    facts = Facts(loaded.pipeline, loaded.places)
    of_spec = [finding for rule in load_rules().values() if rule.check for finding in rule.check(facts)]
    return of_spec + run_setting_rules(read_settings(facts))


def run_setting_rules(settings: JobSettings) -> list[Finding]:
    """Run the rules that read the settings of a spec or of a script."""
    rules = [rule.check_settings for rule in load_rules().values() if rule.check_settings]
    return [finding for check in rules for finding in check(settings)]


def run_plan_rules(queries: Sequence[PlannedQuery], loaded: LoadedSpec | None = None) -> list[Finding]:
    """Run the rules on planned queries; `loaded` is their spec, or `None` for a script."""
    facts = Facts(loaded.pipeline, loaded.places) if loaded and loaded.pipeline else None
    judges = [rule.judge for rule in load_rules().values() if rule.judge]
    return list(
        dict.fromkeys(finding for query in queries for judge in judges for finding in judge(query, facts))
    )


def finish_findings(
    loaded: LoadedSpec, reported_findings: Sequence[Finding], *, complete: bool, has_connected: bool = False
) -> list[Finding]:
    """Apply suppressions and the spec's severities to findings, and sort them in file order.

    `complete` means that plans were checked too, `has_connected` that servers were. Only then is a comment reported
    as unused if it allows a finding that needs a plan or a server.
    """
    judged = {code for code, rule in load_rules().items() if complete or rule.judge is None}
    judged |= ASKED if has_connected else set()
    known = {*load_rules(), *ASKED}
    findings = apply_suppressions(reported_findings, loaded.texts, known - NEVER_ALLOWED, judged)
    if loaded.pipeline is not None:
        findings = apply_severities(findings, loaded.pipeline.rules, loaded.places, known, NEVER_ALLOWED)
    return sort_findings(findings, loaded.places.file)
