"""`millstream check`: find errors in pipelines before they start."""

from __future__ import annotations

import sys
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import click

from millstream.cli.check.reports import format_reports
from millstream.cli.cluster import use_cluster
from millstream.cli.messages import is_quiet, print_hint
from millstream.cli.progress import overwrite_line
from millstream.cli.project import find_spec, load_project, project_options, use_colors
from millstream.diagnostics.failure import InvalidInput
from millstream.diagnostics.render import Form

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millstream.checking.batch_check import Checker, CheckReport
    from millstream.checking.check import CheckResult
    from millstream.checking.targets import CheckTarget
    from millstream.pipeline.model import Pipeline
    from millstream.pipeline.spec_file import LoadedSpec

FORMS: tuple[str, ...] = get_args(Form)
_PATH = click.Path(path_type=Path)


class _WithArguments(click.Command):
    """A command that passes the words after `--` to the script that it checks."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the words before `--`, or up to the name of the only script; store the rest in `ctx.obj`."""
        index = self._end_of_script(args)
        if index is None:
            index = args.index("--") if "--" in args else len(args)
            ctx.obj = args[index + 1 :]
        else:
            ctx.obj = args[index + 1 :] if args[index : index + 1] == ["--"] else args[index:]
            print_taken_option(self, ctx.obj)
        return super().parse_args(ctx, args[:index])

    def _end_of_script(self, args: list[str]) -> int | None:
        """Return the index after the script's name, if a script is the only target and arguments follow it."""
        index = find_first_target(self, args)
        if index is None or not is_script(Path(args[index])):
            return None
        has_arguments = index + 1 < len(args) and not _is_target(Path(args[index + 1]))
        return index + 1 if has_arguments else None

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """Return the usage, with the script's arguments at the end."""
        return [*super().collect_usage_pieces(ctx), "[ARGUMENT]..."]


def find_first_target(command: click.Command, args: Sequence[str]) -> int | None:
    """Return the index of the first word that is no option and no value of one; None if none is before `--`."""
    takes_value = {
        name for option in command.params if not getattr(option, "is_flag", True) for name in option.opts
    }
    words = iter(enumerate(args))
    for index, word in words:
        if word == "--":
            return None
        if word in takes_value:
            next(words, None)
        elif not word.startswith("-"):
            return index
    return None


def print_taken_option(command: click.Command, arguments: Sequence[str]) -> None:
    """Print that an argument of a script, which is the name of an option of the command too, goes to the script."""
    own = {name for option in command.params for name in option.opts}
    if taken := [word for word in arguments if word.partition("=")[0] in own]:
        sentence = f"'{taken[0]}' goes to the script; put options of {command.name} before its name"
        click.echo(sentence, err=True)


def is_script(path: Path) -> bool:
    """Return whether a path is a script or a notebook, and not a spec or a declarative project."""
    from millstream.checking.targets import TargetKind, find_targets

    if path.suffix not in (".py", ".ipynb") or not path.is_file():
        return False
    return [target.kind for target in find_targets([path])] == [TargetKind.SCRIPT]


def _is_target(path: Path) -> bool:
    """Return whether a word after a script is a further target, and not an argument of the script."""
    from millstream.checking.targets import find_targets, is_spec

    if path.is_file():
        return path.suffix in (".py", ".ipynb") or (path.suffix in (".yml", ".yaml") and is_spec(path))
    try:
        return path.is_dir() and bool(find_targets([path]))
    except InvalidInput:
        return False


@click.command(
    "check",
    cls=_WithArguments,
    context_settings={"ignore_unknown_options": True},
    short_help="Find errors in a pipeline before it starts.",
)
@click.argument("targets", nargs=-1, type=_PATH, metavar="[TARGET]...")
@project_options
@click.option(
    "--fast", is_flag=True, help="Run only the checks that do not need Spark; this takes about half a second."
)
@click.option("--connect", is_flag=True, help="Also connect to brokers, databases and tables.")
@click.option("--fix", is_flag=True, help="Apply the fixes that cannot change results, then check again.")
@click.option("--unsafe-fixes", is_flag=True, help="Also apply the fixes that may change results.")
@click.option("--diff", is_flag=True, help="Print the fixes as a patch instead of applying them.")
@click.option(
    "--schema",
    "schemas",
    multiple=True,
    metavar="NAME=FILE",
    help="Read the columns of NAME (a topic, path or table that a script reads) from FILE, which contains DDL, an "
    "Avro schema, or Spark's JSON form of a schema; can be repeated.",
)
@click.option(
    "--table",
    "tables",
    multiple=True,
    metavar="NAME=DDL",
    help="Give the columns of the topic, path or table NAME, such as 'orders=id INT, total DOUBLE'; can be "
    "repeated.",
)
@click.option("--watch", is_flag=True, help="Check again whenever a file is saved, until Ctrl-C.")
@click.option(
    "--server",
    is_flag=True,
    help="For editors: read file names from stdin, and check each file in a Spark session that stays open.",
)
@click.option("--format", "form", type=click.Choice(FORMS), default="text", help="Output format.")
@click.option("--json", "as_json", is_flag=True, help="Same as --format json.")
@click.pass_obj
def command(
    arguments: list[str],
    /,
    targets: tuple[Path, ...],
    file: Path | None,
    overrides: Sequence[str],
    env_file: Path | None,
    *,
    form: str,
    as_json: bool,
    schemas: tuple[str, ...],
    tables: tuple[str, ...],
    **chosen: bool,
) -> int:
    """Find errors in pipelines before they run.

    A TARGET is a Millstream spec, a PySpark script or notebook, the spec of a Spark declarative pipeline, or
    a folder that contains any of these. The default is the spec in this folder, or the nearest spec in a
    folder above. All words after a script's name, or after --, are passed to the script as its arguments.

    If a script reads a topic, path or catalog table without declaring its columns, declare them with --schema
    or --table, or in a file millstream-check.yml next to the script.

    First, Millstream applies its rules to the text of the spec. Then Spark plans every view and query over
    empty streams. If a query can no longer continue from its checkpoint, a warning reports this, and
    'millstream plan' explains why. Without --connect, the command contacts no broker or database. With
    --connect, it also checks that each source and sink of a spec exists and that the sinks accept the rows.

    Exit codes: 0, no errors (warnings do not count); 1, errors, or --diff has printed an edit; 2, a spec cannot
    be read; 4, --connect cannot reach a system; 5, no query of any script could be checked. With several
    targets, the exit code is the highest one of 1, 2 and 4; 5 is returned only if none of these applies.
    """
    from millstream.checking.batch_check import Checker
    from millstream.checking.given_columns import read_columns
    from millstream.checking.targets import TargetKind
    from millstream.cli.plan.changes_since_checkpoint import find_changes

    if chosen["server"]:
        return _serve(targets, overrides, env_file)
    check_targets, script_arguments = _targets(targets, file)
    _refuse_odd(chosen, "json" if as_json else form)
    if foreign := next((target for target in check_targets if target.kind is not TargetKind.SPEC), None):
        if chosen["connect"]:
            raise InvalidInput(
                f"--connect needs a pipeline spec, and {foreign.name} is not one", "leave --connect out"
            )
        if chosen["fast"]:
            raise InvalidInput(
                f"--fast needs a pipeline spec, and {foreign.name} must be run to be checked",
                "leave --fast out",
            )
    with Checker(
        load=lambda path: use_cluster(load_project(path, overrides, env_file)),
        is_fast=chosen["fast"],
        connects=chosen["connect"],
        arguments=[*script_arguments, *arguments],
        columns=read_columns(schemas, tables),
        say=print_progress,
        confines=foreign is not None,
        changes_files=chosen["fix"] or chosen["unsafe_fixes"],
        compare=find_changes,
    ) as checker:
        if chosen["watch"]:
            from millstream.cli.check.watch import watch

            show_report = partial(print_reports, form=form, fast=chosen["fast"], following=False)
            return watch(checker, check_targets, [env_file] if env_file else [], show_report)
        reports = checker.all(check_targets)
        if chosen["diff"]:
            return _diff(reports, unsafe=chosen["unsafe_fixes"])
        if chosen["fix"] or chosen["unsafe_fixes"]:
            reports = [_fixed(checker, report, unsafe=chosen["unsafe_fixes"]) for report in reports]
    print_progress("")
    for door in checker.confinement.open_doors():
        click.echo(f"note: {door}", err=True)
    return print_reports(reports, "json" if as_json else form, fast=chosen["fast"])


def _serve(targets: Sequence[Path], overrides: Sequence[str], env_file: Path | None) -> int:
    from millstream.checking.batch_check import Checker
    from millstream.cli.check.serve import serve

    if targets:
        raise InvalidInput("--server reads the files to check from stdin", "leave their names out")
    with Checker(load=lambda path: load_project(path, overrides, env_file), confines=True) as checker:
        return serve(checker)


def check_with_spark(loaded: LoadedSpec) -> CheckResult:
    """Run all checks, with Spark, on a spec that is already loaded."""
    from millstream.checking.batch_check import Checker
    from millstream.checking.targets import CheckTarget, TargetKind

    with Checker(load=lambda _: loaded, say=print_progress) as checker:
        report = checker.recheck(CheckTarget(TargetKind.SPEC, Path(loaded.places.file)))
    print_progress("")
    return report.checked


def print_reports(reports: Sequence[CheckReport], form: str, *, fast: bool, following: bool = True) -> int:
    """Print reports to stdout in one format, with the next command if `following`, and return the exit code."""
    if form == "text":
        for report in reports:
            click.echo(_text(report, named=len(reports) > 1), nl=False)
        if len(reports) > 1:
            click.echo(format_total(reports))
    else:
        click.echo(format_reports(reports, form), nl=False)
    from millstream.checking.batch_check import find_exit_code

    worst = find_exit_code(reports)
    if following and form == "text" and worst == 0 and all(report.loaded for report in reports):
        print_hint(f"next: {'millstream check' if fast else 'millstream run'}")
    return worst


def _text(report: CheckReport, *, named: bool) -> str:
    """Format the report of one target as text."""
    from millstream.diagnostics.judged_query import format_judged
    from millstream.diagnostics.render import render
    from millstream.spec.secrets.redaction import redact_values

    checked, pipeline = report.checked, report.loaded.pipeline if report.loaded else None
    guarantees = [promise.plain() for promise in checked.promises]
    rendered = redact_values(
        render(checked.findings, checked.texts, "text", use_colors(sys.stdout), guarantees)
    )
    if checked.judged is not None:
        rendered += redact_values(f"{format_judged(checked.judged)}\n")
    if not checked.findings:
        rendered = f"{format_counts(pipeline) if pipeline else report.target.name}, no findings\n\n{rendered}"
    return f"{report.target.name}\n\n{rendered}\n" if named else rendered


def format_total(reports: Sequence[CheckReport]) -> str:
    """Return `3 checked: 2 without errors, 1 with errors`, and the number of findings."""
    from millstream.diagnostics.text import count_by_severity

    failed_count = sum(report.exit_code > 0 for report in reports)
    findings = [finding for report in reports for finding in report.checked.findings]
    message = (
        f"{len(reports)} checked: {len(reports) - failed_count} without errors, {failed_count} with errors"
    )
    return f"{message} ({count_by_severity(findings)})" if findings else message


def format_counts(pipeline: Pipeline) -> str:
    """Return the size of a pipeline, as in `ecommerce: 4 sources, 2 views, 2 queries`."""
    parts = ((pipeline.sources, "source"), (pipeline.views, "view"), (pipeline.queries, "query"))
    words = [f"{len(items)} {word if len(items) == 1 else _plural(word)}" for items, word in parts]
    return f"{pipeline.name}: {', '.join(words)}"


def _plural(word: str) -> str:
    return "queries" if word == "query" else f"{word}s"


def _targets(words: Sequence[Path], file: Path | None) -> tuple[list[CheckTarget], list[str]]:
    """Split the words into targets and the arguments of a script, which begin at the first word that is no file."""
    from millstream.checking.targets import TargetKind, find_targets

    if words and file:
        raise InvalidInput("-f and targets cannot be combined", "leave -f out")
    if not words:
        return find_targets([find_spec(file)]), []
    paths = list(takewhile(Path.exists, words))
    arguments = [str(word) for word in words[len(paths) :]]
    check_targets = find_targets(paths)
    if arguments and [target.kind for target in check_targets] != [TargetKind.SCRIPT]:
        if arguments[0].startswith("-"):
            raise _no_option(arguments[0])
        find_targets([Path(arguments[0])])
    return check_targets, arguments


def _no_option(word: str) -> click.NoSuchOption:
    """Return click's error for an unknown option, with the nearest known one."""
    from difflib import get_close_matches

    context = click.get_current_context()
    options = [name for option in context.command.params for name in option.opts if name.startswith("--")]
    name = word.partition("=")[0]
    return click.NoSuchOption(name, possibilities=get_close_matches(name, options), ctx=context)


def _refuse_odd(chosen: dict[str, bool], form: str) -> None:
    """Raise `InvalidInput` for options that cannot be combined."""
    edits = chosen["fix"] or chosen["unsafe_fixes"] or chosen["diff"]
    if chosen["watch"] and edits:
        raise InvalidInput("--watch does not change the files that it watches", "leave out --watch, or --fix")
    if chosen["watch"] and form not in ("text", "concise"):
        raise InvalidInput(f"--watch prints text, not {form}", "leave out --format, or use --format concise")
    if chosen["diff"] and form != "text":
        raise InvalidInput(f"--diff prints a patch, not {form}", "leave out --diff or --format")


def _fixed(checker: Checker, report: CheckReport, *, unsafe: bool) -> CheckReport:
    """Apply the fixes of a target's findings, print them, and return the report of the repeated check."""
    from millstream.checking.apply_fixes import collect_edits, fix_findings
    from millstream.diagnostics.snippet import escape_control

    fixed = fix_findings(report, lambda: checker.recheck(report.target), unsafe=unsafe)
    print_progress("")
    for change in fixed.changes:
        name, finding = change.edit.file, change.finding
        click.echo(
            escape_control(f"fixed {name}:{change.edit.line + 1} {finding.code} {finding.fix}"), err=True
        )
    if remaining := len(collect_edits(fixed.report.checked.findings, unsafe=True)):
        option = "--diff --unsafe-fixes" if not unsafe else "--diff"
        noun = "fix was" if remaining == 1 else "fixes were"
        click.echo(f"{remaining} {noun} not applied; see: millstream check {option}", err=True)
    return fixed.report


def _diff(reports: Sequence[CheckReport], *, unsafe: bool) -> int:
    """Print the patch of all fixes, and return 1 if it is not empty."""
    from millstream.checking.apply_fixes import render_patch

    print_progress("")
    parts = [render_patch(report.checked.findings, unsafe=unsafe) for report in reports]
    click.echo("".join(parts), nl=False)
    from millstream.checking.batch_check import find_exit_code

    return max(1 if any(parts) else 0, find_exit_code(reports))


def print_progress(words: str) -> None:
    """Print a line that the next one overwrites, on a terminal only."""
    if sys.stderr.isatty() and not is_quiet():
        overwrite_line(words)
