"""`millstream test`: play event-time tests, a micro-batch a step, on the real engine."""

from __future__ import annotations

import time
from pathlib import Path

import click

from millstream.diagnostics.failure import WrongUse

_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command("test", short_help="Play event-time tests on the real engine.")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path), metavar="[PATH]...")
@click.option("-k", "words", metavar="WORDS", help="Only tests with all these words in their file or name.")
@click.option("-x", "stop", is_flag=True, help="Stop at the first test that fails.")
@click.option("--update", is_flag=True, help="Rewrite what tests expect to what came.")
@click.option(
    "--record", metavar="SOURCE", help="Print a test made of the newest records of a source or topic."
)
@click.option(
    "--rows", type=click.IntRange(1, 1000), default=20, show_default=True, help="How many records to record."
)
@click.option("--query", metavar="QUERY", help="The query that a recorded test plays.")
@click.option(
    "--shuffle",
    "splits",
    type=click.IntRange(1),
    metavar="N",
    help="Replay each test in N other batch splits; each must end with the batch answer.",
)
@click.option("--seed", type=int, help="Draws splits as an earlier --shuffle did. [default: a fresh one]")
@click.option("--watch", is_flag=True, help="Play again whenever a file is saved; Ctrl-C ends it.")
@click.option("--junit", type=_FILE, metavar="FILE", help="Write JUnit XML too, for build servers.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
@click.option("--env-file", type=_FILE, help="File of NAME=value lines.")
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
    """Play the tests of a project.

    A PATH is a test file or a folder; without one, the tests folder beside the spec here or in a folder above.
    Each step of a test is one micro-batch of Spark, with real state, checkpoint and watermark, in one session for
    all tests. Nothing is connected to.

    Ends with 0 when all tests pass, with 1 when one fails or cannot be understood, with 2 when a file cannot be read.
    """
    if record is not None:
        from millstream.cli.recording import record_test

        return record_test(paths, record, rows, query, env_file)
    if splits is not None:
        if watch or update or junit:
            raise WrongUse("--shuffle plays other splits, once", "leave --watch, --update and --junit out")
        from millstream.cli.shuffling import shuffle_tests

        return shuffle_tests(paths, words, env_file, splits, seed, stop=stop, as_json=as_json)
    if watch:
        if update or junit or as_json:
            raise WrongUse("--watch prints text, again and again", "leave --update, --junit and --json out")
        from millstream.cli.watch_tests import watch_tests

        return watch_tests(paths, words, env_file, stop=stop)
    if update:
        from millstream.cli.updating import update_tests

        return update_tests(paths, words, env_file)
    return play_tests(paths, words, env_file, junit, stop=stop, as_json=as_json)


def play_tests(
    paths: tuple[Path, ...],
    words: str | None,
    env_file: Path | None,
    junit: Path | None,
    *,
    stop: bool,
    as_json: bool,
) -> int:
    """Play tests once; gives the exit code."""
    from millstream.cli.playing import Screen, following, gather, play, status, summary
    from millstream.testing import results as forms
    from millstream.testing.run import Runner

    began = time.monotonic()
    suites, cases = gather(paths, words, env_file)
    screen = Screen(quiet=as_json)
    with Runner(screen.say) as runner:
        results = play(runner, suites, cases, screen, stop=stop)
    screen.steps.done()
    if junit is not None:
        try:
            junit.write_text(forms.junit(results), encoding="utf-8")
        except OSError as failed:
            raise WrongUse(
                f"{junit} cannot be written: {failed.strerror}", "name another with --junit"
            ) from None
    if as_json:
        click.echo(forms.as_json(results), nl=False)
    else:
        click.echo(summary(results, began) if cases else "no test was played")
        click.echo(following(suites, results), err=True)
    return status(suites, results)
