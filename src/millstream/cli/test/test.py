"""`millstream test`: run event-time tests on Spark, one micro-batch per step."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from millstream.cli.messages import print_hint
from millstream.diagnostics.failure import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Mapping

_FILE = click.Path(path_type=Path, dir_okay=False)
# The options of each way to run tests, except `--env-file`, which all have; the last way has no option of its own.
_TAKES = {
    "--record": {"--rows", "--query"},
    "--shuffle": {"-k", "-x", "--json", "--seed"},
    "--watch": {"-k", "-x"},
    "--update": {"-k"},
    "": {"-k", "-x", "--json", "--junit"},
}


@click.command("test", short_help="Run event-time tests on a real Spark engine.")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path), metavar="[PATH]...")
@click.option(
    "-k", "words", metavar="WORDS", help="Run only the tests whose file or name contains all these words."
)
@click.option("-x", "stop", is_flag=True, help="Stop at the first test that fails.")
@click.option(
    "--update", is_flag=True, help="Replace the expected values in the test files with the actual results."
)
@click.option(
    "--record",
    metavar="SOURCE",
    help="Print a test whose input is the newest records of this source.",
)
@click.option(
    "--rows",
    type=click.IntRange(1, 1000),
    default=20,
    show_default=True,
    help="With --record: number of records to read.",
)
@click.option("--query", metavar="QUERY", help="With --record: the query to test.")
@click.option(
    "--shuffle",
    "splits",
    type=click.IntRange(1),
    metavar="N",
    help="Also run each test N times with its rows split into batches at random; each run must give the "
    "result of a single batch.",
)
@click.option(
    "--seed",
    type=int,
    help="Random seed for --shuffle; the same seed gives the same batches. [default: random]",
)
@click.option("--watch", is_flag=True, help="Run again whenever a file is saved, until Ctrl-C.")
@click.option("--junit", type=_FILE, metavar="FILE", help="Also write JUnit XML, for build servers.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
@click.option(
    "--env-file",
    type=_FILE,
    help="File with values for the variables of the spec, one NAME=value on each line.",
)
def command(
    paths: tuple[Path, ...],
    words: str | None,
    record: str | None,
    rows: int,
    query: str | None,
    splits: int | None,
    seed: int | None,
    junit: Path | None,
    env_file: Path | None,
    *,
    stop: bool,
    update: bool,
    watch: bool,
    as_json: bool,
) -> int:
    """Run the event-time tests of a project.

    A PATH is a test file or a folder. The default is the folder 'tests' next to pipeline.yml. Millstream looks
    for pipeline.yml in the current folder and in the folders above. Spark executes each step of a test as one
    micro-batch, with real state, checkpoint and watermark. All tests share one Spark session. No broker or
    database is contacted.

    Exits with 0 if all tests pass, with 1 if one fails or is invalid, and with 2 if a file cannot be read.
    """
    context = click.get_current_context()
    _refuse_ignored(
        {
            "--record": record is not None,
            "--shuffle": splits is not None,
            "--watch": watch,
            "--update": update,
            "-k": words is not None,
            "-x": stop,
            "--junit": junit is not None,
            "--json": as_json,
            "--seed": seed is not None,
            "--rows": context.get_parameter_source("rows") is not ParameterSource.DEFAULT,
            "--query": query is not None,
        }
    )
    if record is not None:
        from millstream.cli.test.record import record_test

        return record_test(paths, record, rows, query, env_file)
    if splits is not None:
        from millstream.cli.test.shuffle import shuffle_tests

        return shuffle_tests(paths, words, env_file, splits, seed, stop=stop, as_json=as_json)
    if watch:
        from millstream.cli.test.watch import watch_tests

        return watch_tests(paths, words, env_file, stop=stop)
    if update:
        from millstream.cli.test.update import update_tests

        return update_tests(paths, words, env_file)
    return run_tests(paths, words, env_file, junit, stop=stop, as_json=as_json)


def _refuse_ignored(is_set: Mapping[str, bool]) -> None:
    """Raise `InvalidInput` for options that would have no effect."""
    mode = next(mode for mode in _TAKES if is_set.get(mode, True))
    ignored = [option for option in is_set if is_set[option] and option not in {mode, *_TAKES[mode]}]
    if ignored and mode:
        hint = "leave it out" if len(ignored) == 1 else "leave them out"
        raise InvalidInput(f"{mode} cannot be combined with {' or '.join(ignored)}", hint)
    for option in ignored:
        needed = next(mode for mode, options in _TAKES.items() if option in options)
        raise InvalidInput(f"{option} has no effect without {needed}", f"add {needed}, or leave it out")


def run_tests(
    paths: tuple[Path, ...],
    words: str | None,
    env_file: Path | None,
    junit: Path | None,
    *,
    stop: bool,
    as_json: bool,
) -> int:
    """Run the tests once and return the exit code."""
    from millstream.cli.test.output import (
        TestOutput,
        exit_code,
        format_summary,
        load_tests,
        next_command,
        run_cases,
    )
    from millstream.testing.runner import results as forms
    from millstream.testing.runner.runner import Runner

    start = time.monotonic()
    suites, cases = load_tests(paths, words, env_file)
    screen = TestOutput(quiet=as_json)
    with Runner(screen.say) as runner:
        results = run_cases(runner, suites, cases, screen, stop=stop)
    screen.steps.clear()
    if junit is not None:
        try:
            junit.write_text(forms.format_junit(results), encoding="utf-8")
        except OSError as error:
            raise InvalidInput(
                f"{junit} cannot be written: {error.strerror}", "choose another file with --junit"
            ) from None
    if as_json:
        click.echo(forms.format_json(results), nl=False)
    else:
        click.echo(format_summary(results, start) if cases else "no test was run")
        print_hint(next_command(suites, results))
    return exit_code(suites, results)
