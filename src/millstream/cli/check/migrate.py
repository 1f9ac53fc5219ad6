"""`millstream migrate`: write a project for a PySpark script."""

from __future__ import annotations

import json
import os
import re
import shlex
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from millstream.cli.check.check import find_first_target, is_script, print_progress, print_taken_option
from millstream.cli.messages import print_hint
from millstream.cli.project import load_project
from millstream.diagnostics.failure import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

    from millstream.checking.targets import CheckTarget
    from millstream.proof.migration.verdict import QueryVerdict


# The beginning of an address such as s3a://lake, as a path has it.
_ADDRESS = re.compile(r"[A-Za-z][\w+.-]+:/")
# Options that the command takes directly after the name of a script too; others are the script's own there.
_OUTPUT = ("-o", "--output")
_FLAGS_AFTER_SCRIPT = ("--prove", "--tests", "--no-tests")


class _WithArguments(click.Command):
    """A command that passes the words after a script to the script, except for its own options directly after it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the words up to the arguments of the script as those of the command."""
        index = find_first_target(self, args)
        if index is None or not is_script(Path(args[index])):
            return super().parse_args(ctx, args)
        has_output = any(word.startswith(_OUTPUT) for word in args[:index])
        end = index + 1
        while end < len(args):
            if args[end] == _OUTPUT[0] and not has_output and args[end + 1 : end + 2] != ["--"]:
                has_output = True
                end += 1
            elif args[end] not in _FLAGS_AFTER_SCRIPT:
                break
            end += 1
        arguments = args[end + 1 :] if args[end : end + 1] == ["--"] else args[end:]
        print_taken_option(self, arguments)
        # Without arguments, `--` would be the value of an option that lacks one.
        return super().parse_args(ctx, [*args[:end], *(["--", *arguments] if arguments else [])])


@click.command(
    "migrate",
    cls=_WithArguments,
    short_help="Convert a PySpark script or Spark declarative pipelines.",
)
@click.argument("script", type=click.Path(path_type=Path, exists=True))
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="Folder to create. Default: the script's name."
)
@click.option(
    "--prove",
    is_flag=True,
    help="Run the script and the project over the same rows, and compare their tables.",
)
@click.option(
    "--input",
    "samples",
    multiple=True,
    metavar="SOURCE=FILE",
    help="With --prove: read the rows of this source from a file instead of generating them. For a topic, "
    "each line of the file is one message.",
)
@click.option(
    "--tests/--no-tests",
    "with_tests",
    default=True,
    help="Write an event-time test for each query. Default: yes.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the result of --prove as JSON.")
def command(
    script: Path,
    arguments: tuple[str, ...],
    output: Path | None,
    samples: tuple[str, ...],
    *,
    prove: bool,
    with_tests: bool,
    as_json: bool,
) -> int:
    """Convert a PySpark script into a project: a spec, the code of its views, tests, and MIGRATION.md.

    SCRIPT is a PySpark script, or the spec or folder of a Spark declarative pipeline. The tables of a
    Spark declarative pipeline are converted into views and queries.

    The script is executed, but its reads and writes are intercepted, as in 'millstream check'; its file is
    not changed. Sources, sinks, output modes and triggers go into the spec. The statements that build a
    query's DataFrame become a view in transforms.py. MIGRATION.md lists, with line numbers, what was
    converted, what the project does differently, and what was not converted. Words after SCRIPT are passed to
    the script as its arguments, except for -o, --prove and --no-tests directly after SCRIPT.

    For each query, a test with generated rows is written to tests/. For this, the query runs over the
    generated rows, batch by batch, and the rows that it returns become the expected rows. A comment in the
    test says whether a single batch over all rows returned the same rows; if it did not, check the expected
    rows yourself.
    --no-tests writes no tests.

    --prove then runs the script and the project over the same generated rows, and compares the tables that
    each query writes. All reads and writes of the script are redirected. If SCRIPT is a declarative pipeline,
    its flows run without a Spark Connect server. An existing project is not overwritten, so you can edit it
    and then run this command again with --prove.

    Exits with 0 if at least one query was converted, and with 5 if none was. With --prove, exits with 0 if
    all compared tables are equal, with 1 if a table differs, and with 5 if no table could be compared.
    """
    from millstream.checking.batch_check import NOTHING_JUDGED, Checker
    from millstream.checking.targets import TargetKind

    target = _find_target(script)
    if output is not None and _ADDRESS.match(str(output)):
        raise InvalidInput(
            f"-o {output} is an address, and a project is a folder on this machine",
            "put the options of migrate before the script, and the script's own arguments after it",
        )
    folder = output or _default_folder(target)
    if folder.exists() and not folder.is_dir():
        raise InvalidInput(f"{folder} is a file", "choose another folder with -o")
    is_written = prove and (folder / "pipeline.yml").is_file()
    if not is_written and folder.exists() and any(folder.iterdir()):
        raise InvalidInput(f"the folder {folder} is not empty", "choose another one with -o")
    files = dict(_read_sample(sample) for sample in samples)
    folder.mkdir(parents=True, exist_ok=True)
    with Checker(load=load_project, say=print_progress, confines=True, writable=(folder,)) as checker:
        spark = checker.spark()
        for sentence in checker.confinement.open_doors() if prove else ():
            click.echo(f"warning: {sentence}", err=True)
        moved = is_written or _write_project(spark, target, arguments, folder)
        if not moved:
            return NOTHING_JUDGED
        if with_tests and not is_written:
            _write_tests(spark, folder)
        if not prove:
            print_hint(f"next: millstream check -f {shlex.quote(str(folder / 'pipeline.yml'))}")
            return 0
        from millstream.proof.migration.prove_migration import prove_flows, prove_migration

        print_progress("running the script and the project over the same rows ...")
        if target.kind is TargetKind.PROJECT:
            verdicts = prove_flows(spark, target.path, folder, files, os.environ)
        else:
            verdicts = prove_migration(spark, script, folder, arguments, files, os.environ)
    print_progress("")
    return _print_verdicts(verdicts, as_json=as_json)


def _find_target(path: Path) -> CheckTarget:
    """Return the script or the declarative project that a path names. Raises `InvalidInput`."""
    from millstream.checking.targets import PROJECTS, CheckTarget, TargetKind, find_targets

    targets = [target for target in find_targets([path]) if target.kind is not TargetKind.SPEC]
    if len(targets) != 1 or (targets[0].kind is TargetKind.SCRIPT and path.suffix != ".py"):
        raise InvalidInput(
            f"{path} is neither a Python script nor a declarative project",
            "name a .py file, or the spec of a project of Spark declarative pipelines",
        )
    (target,) = targets
    spec = next((target.path / name for name in PROJECTS if (target.path / name).is_file()), target.path)
    return CheckTarget(target.kind, spec)


def _default_folder(target: CheckTarget) -> Path:
    """Return the folder for a project: named like the script, or like the folder of the other project."""
    from millstream.checking.targets import TargetKind

    if target.kind is TargetKind.PROJECT and target.path.suffix != ".py":
        return Path(f"{target.path.resolve().parent.name}-millstream")
    return Path(target.path.stem)


def _write_project(
    spark: SparkSession, target: CheckTarget, arguments: tuple[str, ...], folder: Path
) -> bool:
    """Write the files of a project. Return whether a query was moved."""
    from millstream.checking.scripts.migration.flow_migration import migrate_project
    from millstream.checking.scripts.migration.migrate import migrate_script
    from millstream.checking.targets import TargetKind

    project = (
        migrate_project(spark, target.path)
        if target.kind is TargetKind.PROJECT
        else migrate_script(spark, target.path, arguments)
    )
    print_progress("")
    for name, text in project.files.items():
        (folder / name).write_text(text, encoding="utf-8")
        click.echo(f"wrote {folder / name}", err=True)
    for reason in project.left:
        click.echo(f"not moved: {reason}", err=True)
    return bool(project.moved)


def _write_tests(spark: SparkSession, folder: Path) -> None:
    """Write a test for each query of a project, say its views in SQL where the test passes, and list both."""
    from millstream.testing.generated.generate import write_tests
    from millstream.testing.generated.sql_views import write_sql_views

    pipeline = load_project(folder / "pipeline.yml").pipeline
    if pipeline is None:
        return
    lines = []
    print_progress("running each query over generated rows for its test ...")
    with tempfile.TemporaryDirectory(prefix="millstream-migrate-", ignore_cleanup_errors=True) as scratch:
        for test in write_tests(spark, pipeline, os.environ, Path(scratch)):
            print_progress("")
            if test.text:
                click.echo(f"wrote {folder / 'tests' / f'{test.query}.yml'}", err=True)
                lines.append(f"- `tests/{test.query}.yml`: {test.sentence}")
            else:
                click.echo(f"no test for query '{test.query}': {test.sentence}", err=True)
                lines.append(f"- no test for query '{test.query}': {test.sentence}")
        print_progress("running each query with its view in SQL ...")
        views = [
            f"- `{view.name}`: {view.reason or 'SQL, with which its test passes as it does with the function'}"
            for view in write_sql_views(spark, folder / "pipeline.yml", os.environ, Path(scratch))
        ]
        print_progress("")
    page = folder / "MIGRATION.md"
    page.write_text(
        f"{page.read_text(encoding='utf-8')}\n## Tests\n\n"
        + "\n".join(lines)
        + "\n"
        + ("\n## Views in SQL or Python\n\n" + "\n".join(views) + "\n" if views else ""),
        encoding="utf-8",
    )


def _read_sample(text: str) -> tuple[str, Path]:
    name, separator, path = text.partition("=")
    if not separator or not Path(path).exists():
        raise InvalidInput(
            f"--input {text} names no file", "give it as SOURCE=FILE, with the name of a source in the script"
        )
    return name, Path(path)


def _print_verdicts(verdicts: Sequence[QueryVerdict], *, as_json: bool) -> int:
    """Print the verdicts and return the exit code."""
    from millstream.checking.batch_check import NOTHING_JUDGED
    from millstream.proof.migration.verdict import TableOutcome

    if as_json:
        click.echo(json.dumps({"queries": [verdict.to_json() for verdict in verdicts]}, indent=2))
    else:
        for verdict in verdicts:
            click.echo(str(verdict))
    outcomes = {verdict.outcome for verdict in verdicts}
    if TableOutcome.DIFFERENT in outcomes:
        return 1
    return 0 if TableOutcome.SAME in outcomes else NOTHING_JUDGED
