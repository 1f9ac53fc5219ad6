"""`millstream test --shuffle`: replay tests in other batch splits, and compare each result with the batch result."""

from __future__ import annotations

import json
import random
import time
from typing import TYPE_CHECKING, Any

import click

from millstream.cli.messages import print_hint
from millstream.cli.test.output import TestOutput, exit_code, load_tests, select_test
from millstream.diagnostics.failure import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from millstream.testing.model import Case
    from millstream.testing.runner.results import Result
    from millstream.testing.runner.runner import Runner
    from millstream.testing.shuffle.shuffle import ShuffleResult

_TONES = {"passed": "32", "failed": "31", "error": "31", "skipped": "34"}
_WORDS = {"passed": "ok", "failed": "FAILED", "error": "ERROR", "skipped": "skip"}


def shuffle_tests(
    paths: tuple[Path, ...],
    words: str | None,
    env_file: Path | None,
    split_count: int,
    seed: int | None,
    *,
    stop: bool,
    as_json: bool,
) -> int:
    """Replay each test in `split_count` other splits, and return the exit code.

    Raises `InvalidInput` if none can be.
    """
    from millstream.testing.runner.results import list_load_errors
    from millstream.testing.runner.runner import Runner

    start = time.monotonic()
    seed = random.SystemRandom().randrange(1, 1_000_000) if seed is None else seed
    suites, cases = load_tests(paths, words, env_file)
    results: list[Result] = [
        result for suite in suites if suite.has_errors for result in list_load_errors(suite)
    ]
    screen = TestOutput(quiet=as_json)
    shuffled: list[dict[str, Any]] = []
    with Runner(screen.say) as runner:
        for case in cases:
            if stop and (results or any(not result["passed"] for result in shuffled)):
                break
            shuffled.append(_shuffled(runner, case, split_count, seed, screen))
    screen.steps.clear()
    if as_json:
        file_errors = [
            {"name": result.name, "file": result.file, "line": result.line, **_error(result)}
            for result in results
        ]
        tests = [
            *file_errors,
            *({key: result[key] for key in result if key != "passed"} for result in shuffled),
        ]
        click.echo(json.dumps({"tests": tests}, ensure_ascii=False, indent=1))
    else:
        click.echo(_summary(shuffled, start, seed))
        print_hint(_following(shuffled, split_count, seed))
    if not results and all(result["outcome"] == "skipped" for result in shuffled):
        raise InvalidInput(
            "none of these tests can be split into other batches", "choose a test with at least two rows"
        )
    return exit_code(suites, results) or int(any(not result["passed"] for result in shuffled))


def _shuffled(runner: Runner, case: Case, split_count: int, seed: int, screen: TestOutput) -> dict[str, Any]:
    """Replay one test, print its result, and return it for the JSON."""
    from millstream.pipeline.load.loader import display_path
    from millstream.testing.shuffle.batch_reference import Baseline
    from millstream.testing.shuffle.report import format_details, summarize_outcome, to_json_data
    from millstream.testing.shuffle.shuffle import shuffle
    from millstream.testing.shuffle.splits import list_items

    def say(text: str) -> None:
        if screen.steps.live:
            screen.say(f"{case.name}: {text}")

    baseline = Baseline(runner.spark([case]), case, list_items(case))
    with runner.open_replay(case) as play:
        shuffled = shuffle(baseline, play, split_count, seed, say)
    test_data = _written_test(case)
    outcome = _outcome(shuffled)
    file = str(display_path(case.file))
    screen.steps.clear()
    if not screen.quiet:
        _print(
            screen,
            file,
            outcome,
            shuffled,
            [summarize_outcome(shuffled), *format_details(shuffled, baseline.items, test_data)],
        )
    return {
        "name": case.name,
        "file": file,
        "line": case.where.line,
        "outcome": outcome,
        "seconds": round(shuffled.seconds, 3),
        "message": None if shuffled.has_passed else summarize_outcome(shuffled),
        "shuffle": to_json_data(shuffled, baseline.items, test_data),
        "passed": outcome in ("passed", "skipped"),
    }


def _outcome(shuffled: ShuffleResult) -> str:
    if shuffled.skipped is not None:
        return "skipped"
    if shuffled.fault is not None:
        return "error"
    return "passed" if shuffled.has_passed else "failed"


def _print(
    screen: TestOutput, file: str, outcome: str, shuffled: ShuffleResult, lines: Sequence[str]
) -> None:
    if file != screen.file:
        click.echo(screen.paint(file, "1"))
        screen.file = file
    word = screen.paint(_WORDS[outcome].ljust(6), _TONES[outcome])
    click.echo(f"  {word}  {shuffled.case.name}  {screen.paint(f'{shuffled.seconds:.1f} s', '34')}")
    for line in lines:
        click.echo(f"        {line}".rstrip())


def _written_test(case: Case) -> Mapping[str, Any]:
    """Return the test as written in its file. Empty for a row of a table, because its values are filled in."""
    from millstream.pipeline.load.document import parse_yaml
    from millstream.testing.files.parametrize import fill_placeholders

    try:
        data = parse_yaml(str(case.file), case.file.read_text(encoding="utf-8-sig")).data
    except (OSError, UnicodeDecodeError):
        return {}
    tests = data.get("tests") if isinstance(data, dict) else None
    test = tests.get(case.name) if isinstance(tests, dict) else None
    return fill_placeholders(test, {}) if isinstance(test, dict) and "table" not in test else {}


def _error(result: Result) -> dict[str, Any]:
    return {"outcome": result.outcome.value, "seconds": result.seconds, "message": result.message}


def _summary(results: Sequence[Mapping[str, Any]], start: float, seed: int) -> str:
    outcomes = [result["outcome"] for result in results]
    words = {
        "passed": "match the batch result in every split",
        "failed": "do not",
        "error": "could not be run",
        "skipped": "cannot be split",
    }
    counted = (
        ", ".join(f"{outcomes.count(key)} {word}" for key, word in words.items() if key in outcomes)
        or "no tests"
    )
    splits = sum(result["shuffle"]["splits"] for result in results)
    return f"{counted}; {splits} splits in {time.monotonic() - start:.1f} s, seed {seed}"


def _following(results: Sequence[Mapping[str, Any]], split_count: int, seed: int) -> str:
    failed_result = next((result for result in results if result["outcome"] == "failed"), None)
    if failed_result is None:
        return "next: millstream prove"
    selected = select_test(failed_result["file"], failed_result["name"])
    return f"next: millstream test {selected} --shuffle {split_count} --seed {seed}"
