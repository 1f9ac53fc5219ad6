"""`millstream test --update`: write actual results into test files as expected values."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from millstream.cli.messages import print_hint
from millstream.cli.test.output import TestOutput, load_tests

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from millstream.testing.model import Case, Outcome


def update_tests(paths: Sequence[Path], words: str | None, env_file: Path | None) -> int:
    """Run every step and update expected values that differ. Returns 1 if something must be changed by hand."""
    from millstream.testing.runner.runner import Runner

    suites, cases = load_tests(paths, words, env_file, filling=True)
    screen = TestOutput()
    needs_manual_change = any(suite.has_errors for suite in suites)
    with Runner(screen.say) as runner:
        if cases:
            runner.spark(cases)
        for suite in suites:
            file_cases = [case for case in cases if case.file == suite.file]
            outcomes = []
            for case in file_cases:
                screen.say(f"1/{len(file_cases)} {case.name}")
                outcomes.append((case, runner.play(case, on=True)))
            screen.steps.clear()
            needs_manual_change = _write(suite.file, outcomes) or needs_manual_change
    print_hint("next: git diff, then millstream test")
    return 1 if needs_manual_change else 0


def _write(file: Path, outcomes: Sequence[tuple[Case, Outcome]]) -> bool:
    """Update one file. Returns whether something in it must be changed by hand."""
    from millstream.checking.apply_fixes import replace_file
    from millstream.testing.authoring.update_expectations import update_expectations

    # Reads bytes, because reading text would change line endings.
    before = file.read_bytes().decode("utf-8")
    byte_order_mark = "\ufeff" if before.startswith("\ufeff") else ""
    update = update_expectations(
        str(file),
        before.removeprefix(byte_order_mark),
        [(case, outcome.results) for case, outcome in outcomes],
    )
    for case, outcome in outcomes:
        if outcome.fault is not None:
            update.not_updated.append(f"'{case.name}' could not be run: {outcome.fault}")
    if update.steps:
        replace_file(file, byte_order_mark + update.text)
        steps = "1 step" if update.steps == 1 else f"{update.steps} steps"
        click.echo(f"{file}: {steps} updated")
    for reason in update.not_updated:
        click.echo(f"{file}: not changed: {reason}")
    return bool(update.not_updated)
