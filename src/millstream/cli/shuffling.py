"""`millstream test --shuffle`: tests replayed in other batch splits, each end held against the batch answer."""

from __future__ import annotations

import json
import random
import time
from typing import TYPE_CHECKING, Any

import click

from millstream.cli.playing import Screen, gather, status
from millstream.diagnostics.failure import WrongUse

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from millstream.testing.case import Case
    from millstream.testing.results import Result
    from millstream.testing.run import Runner
    from millstream.testing.shuffle import Shuffled

_TONES = {"passed": "32", "failed": "31", "error": "31", "skipped": "34"}
_WORDS = {"passed": "ok", "failed": "FAILED", "error": "ERROR", "skipped": "left"}


def shuffle_tests(
    paths: tuple[Path, ...],
    words: str | None,
    env_file: Path | None,
    many: int,
    seed: int | None,
    *,
    stop: bool,
    as_json: bool,
) -> int:
    """Replay tests in `many` other splits each; gives the exit code, 1 too when none could be cut."""
    from millstream.testing.results import unread
    from millstream.testing.run import Runner

    began = time.monotonic()
    seed = random.SystemRandom().randrange(1, 1_000_000) if seed is None else seed
    suites, cases = gather(paths, words, env_file)
    results: list[Result] = [one for suite in suites if suite.failed for one in unread(suite)]
    screen = Screen(quiet=as_json)
    told: list[dict[str, Any]] = []
    with Runner(screen.say) as runner:
        for case in cases:
            if stop and (results or any(not one["passed"] for one in told)):
                break
            told.append(_shuffled(runner, case, many, seed, screen))
    screen.steps.done()
    if as_json:
        wrong = [{"name": one.name, "file": one.file, "line": one.line, **_error(one)} for one in results]
        tests = [*wrong, *({key: one[key] for key in one if key != "passed"} for one in told)]
        click.echo(json.dumps({"tests": tests}, ensure_ascii=False, indent=1))
    else:
        click.echo(_summary(told, began, seed))
        click.echo(_following(told, many, seed), err=True)
    if not results and all(one["outcome"] == "skipped" for one in told):
        raise WrongUse("none of these tests can be cut into other batches", "name a test that feeds two rows")
    return status(suites, results) or int(any(not one["passed"] for one in told))


def _shuffled(runner: Runner, case: Case, many: int, seed: int, screen: Screen) -> dict[str, Any]:
    """Replay one test and tell of it."""
    from millstream.pipeline.loaded import shown
    from millstream.testing.baseline import Baseline
    from millstream.testing.shuffle import shuffle
    from millstream.testing.splits import items
    from millstream.testing.telling import as_data, headline, lines

    def say(text: str) -> None:
        if screen.steps.live:
            screen.say(f"{case.name}: {text}")

    baseline = Baseline(runner.spark([case]), case, items(case))
    with runner.replaying(case) as play:
        found = shuffle(baseline, play, many, seed, say)
    own = _own(case)
    outcome = _outcome(found)
    file = str(shown(case.file))
    screen.steps.done()
    if not screen.quiet:
        _print(screen, file, outcome, found, [headline(found), *lines(found, baseline.items, own)])
    return {
        "name": case.name,
        "file": file,
        "line": case.where.line,
        "outcome": outcome,
        "seconds": round(found.seconds, 3),
        "message": None if found.passed else headline(found),
        "shuffle": as_data(found, baseline.items, own),
        "passed": outcome in ("passed", "skipped"),
    }


def _outcome(found: Shuffled) -> str:
    if found.skipped is not None:
        return "skipped"
    if found.fault is not None:
        return "error"
    return "passed" if found.passed else "failed"


def _print(screen: Screen, file: str, outcome: str, found: Shuffled, lines: Sequence[str]) -> None:
    if file != screen.file:
        click.echo(screen.paint(file, "1"))
        screen.file = file
    word = screen.paint(_WORDS[outcome].ljust(6), _TONES[outcome])
    click.echo(f"  {word}  {found.case.name}  {screen.paint(f'{found.seconds:.1f} s', '34')}")
    for line in lines:
        click.echo(f"        {line}".rstrip())


def _own(case: Case) -> Mapping[str, Any]:
    """The test as its file has it; nothing for a row of a table, whose values are filled in."""
    from millstream.pipeline.document import read
    from millstream.testing.tables import filled

    try:
        data = read(str(case.file), case.file.read_text(encoding="utf-8-sig")).data
    except (OSError, UnicodeDecodeError):
        return {}
    tests = data.get("tests") if isinstance(data, dict) else None
    found = tests.get(case.name) if isinstance(tests, dict) else None
    return filled(found, {}) if isinstance(found, dict) and "table" not in found else {}


def _error(one: Result) -> dict[str, Any]:
    return {"outcome": one.outcome.value, "seconds": one.seconds, "message": one.message}


def _summary(told: Sequence[Mapping[str, Any]], began: float, seed: int) -> str:
    ends = [one["outcome"] for one in told]
    words = {
        "passed": "end with the batch answer in every split",
        "failed": "do not",
        "error": "could not be played",
        "skipped": "cannot be cut",
    }
    counted = (
        ", ".join(f"{ends.count(key)} {word}" for key, word in words.items() if key in ends) or "no tests"
    )
    splits = sum(one["shuffle"]["splits"] for one in told)
    return f"{counted}; {splits} splits in {time.monotonic() - began:.1f} s, seed {seed}"


def _following(told: Sequence[Mapping[str, Any]], many: int, seed: int) -> str:
    failed = next((one for one in told if one["outcome"] == "failed"), None)
    if failed is None:
        return "next: millstream prove"
    name = failed["name"].replace("'", " ")
    return f"next: millstream test {failed['file']} -k '{name}' --shuffle {many} --seed {seed}"
