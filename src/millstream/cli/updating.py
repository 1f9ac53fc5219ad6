"""`millstream test --update`: rewrite what tests expect to what came, in their files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from millstream.cli.playing import Screen, gather
from millstream.diagnostics.failure import WrongUse

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from millstream.testing.case import Case, Outcome


def update_tests(paths: Sequence[Path], words: str | None, env_file: Path | None) -> int:
    """Play every step of the tests, and write what came where it differs; 1 when something is left to a person."""
    from millstream.testing.run import Runner

    suites, cases = gather(paths, words, env_file, filling=True)
    screen = Screen()
    left = any(suite.failed for suite in suites)
    with Runner(screen.say) as runner:
        if cases:
            runner.spark(cases)
        for suite in suites:
            own = [case for case in cases if case.file == suite.file]
            outcomes = []
            for case in own:
                screen.say(f"1/{len(own)} {case.name}")
                outcomes.append((case, runner.play(case, on=True)))
            screen.steps.done()
            left = _write(suite.file, outcomes) or left
    click.echo("next: git diff, then millstream test", err=True)
    return 1 if left else 0


def _write(file: Path, outcomes: Sequence[tuple[Case, Outcome]]) -> bool:
    """Rewrite one file; is something left that a person must see to?"""
    from millstream.testing.update import updated

    # Bytes and not text: the ends of lines stay what they are.
    before = file.read_bytes().decode("utf-8")
    mark = "\ufeff" if before.startswith("\ufeff") else ""
    found = updated(str(file), before.removeprefix(mark), [(case, one.played) for case, one in outcomes])
    for case, one in outcomes:
        if one.fault is not None:
            found.left.append(f"'{case.name}' could not be played: {one.fault}")
    if found.steps:
        try:
            file.write_bytes((mark + found.text).encode("utf-8"))
        except OSError as failed:
            raise WrongUse(f"{file} cannot be written: {failed.strerror}", "see who may write it") from None
        many = "1 step" if found.steps == 1 else f"{found.steps} steps"
        click.echo(f"{file}: {many} rewritten")
    for said in found.left:
        click.echo(f"{file}: left as it is: {said}")
    return bool(found.left)
