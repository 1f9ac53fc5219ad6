"""`millstream check`: prove pipelines right before they start."""

from __future__ import annotations

import sys
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import click

from millstream.cli.project import colored, find_spec, load_project, project_options
from millstream.diagnostics.failure import WrongUse
from millstream.diagnostics.render import Form

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millstream.pipeline.load import Loaded
    from millstream.pipeline.model import Pipeline
    from millstream.runtime.checker import Checker, Report
    from millstream.runtime.checking import Checked
    from millstream.runtime.targets import Target

FORMS: tuple[str, ...] = get_args(Form)
_PATH = click.Path(path_type=Path)


class _WithArguments(click.Command):
    """A command whose words after `--` belong to the script that it is given."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As click does, for the words before `--`."""
        at = args.index("--") if "--" in args else len(args)
        ctx.obj = args[at + 1 :]
        return super().parse_args(ctx, args[:at])

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """As click does, with the script's own arguments at the end."""
        return [*super().collect_usage_pieces(ctx), "[ARGUMENT]..."]


@click.command(
    "check",
    cls=_WithArguments,
    context_settings={"ignore_unknown_options": True},
    short_help="Prove a pipeline right before it starts.",
)
@click.argument("targets", nargs=-1, type=_PATH, metavar="[TARGET]...")
@project_options
@click.option("--fast", is_flag=True, help="Only what needs no Spark; well under a second.")
@click.option("--connect", is_flag=True, help="Ask the brokers, databases and tables too.")
@click.option("--fix", is_flag=True, help="Make the safe edits of findings, then check again.")
@click.option("--unsafe-fixes", is_flag=True, help="Make the other edits too; they may change results.")
@click.option("--diff", is_flag=True, help="Print the edits as a patch, and make none.")
@click.option("--watch", is_flag=True, help="Check again whenever a file is saved; Ctrl-C ends it.")
@click.option("--format", "form", type=click.Choice(FORMS), default="text", help="How findings are printed.")
@click.option("--json", "as_json", is_flag=True, help="Short for --format json.")
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
    **chosen: bool,
) -> int:
    """Find what is wrong with pipelines before anything runs.

    A TARGET is a spec, a folder with specs in it, a PySpark script, or a folder with a spark-pipeline.yml; without
    one it is the spec here or in a folder above. What stands after a script, or after --, is given to it.

    First come the rules, then Spark's own verdict on every view and query over empty streams. Nothing is connected
    to, unless --connect asks each source and sink of a spec whether it is there and takes what will come.

    Ends with 0 when there is no error (warnings may be), with 1 when there is one, with 2 when a spec cannot be
    read, with 4 when --connect found nobody to ask; of several targets the worst counts.
    """
    from millstream.runtime.checker import Checker
    from millstream.runtime.targets import Kind

    wanted, given = _targets(targets, file)
    _refuse_odd(chosen, "json" if as_json else form)
    if foreign := next((one for one in wanted if one.kind is not Kind.SPEC), None):
        if chosen["connect"]:
            raise WrongUse(
                f"--connect asks what a spec names, and {foreign.name} is none", "leave --connect out"
            )
        if chosen["fast"]:
            raise WrongUse(
                f"--fast reads a spec, and {foreign.name} must be run to be judged", "leave --fast out"
            )
    with Checker(
        load=lambda path: load_project(path, overrides, env_file),
        fast=chosen["fast"],
        connect=chosen["connect"],
        arguments=[*given, *arguments],
        say=progress,
    ) as checker:
        if chosen["watch"]:
            from millstream.cli.watch import watch

            again = partial(show, form=form, fast=chosen["fast"], following=False)
            return watch(checker, wanted, [env_file] if env_file else [], again)
        reports = checker.all(wanted)
        if chosen["diff"]:
            return _diff(reports, unsafe=chosen["unsafe_fixes"])
        if chosen["fix"] or chosen["unsafe_fixes"]:
            reports = [_fixed(checker, report, unsafe=chosen["unsafe_fixes"]) for report in reports]
    progress("")
    return show(reports, "json" if as_json else form, fast=chosen["fast"])


def with_spark(loaded: Loaded) -> Checked:
    """The whole check of a spec that is loaded already."""
    from millstream.runtime.checker import Checker
    from millstream.runtime.targets import Kind, Target

    with Checker(load=lambda _: loaded, say=progress) as checker:
        report = checker.again(Target(Kind.SPEC, Path(loaded.places.file)))
    progress("")
    return report.checked


def show(reports: Sequence[Report], form: str, *, fast: bool, following: bool = True) -> int:
    """Print reports to stdout in one form, with what to do next unless not `following`; gives the exit code."""
    if form == "text":
        for report in reports:
            click.echo(_text(report, named=len(reports) > 1), nl=False)
        if len(reports) > 1:
            click.echo(total(reports))
    else:
        click.echo(_machine(reports, form), nl=False)
    worst = max(report.exit_code for report in reports)
    if following and form == "text" and worst == 0 and all(report.loaded for report in reports):
        click.echo(f"next: {'millstream check' if fast else 'millstream run'}", err=True)
    return worst


def _text(report: Report, *, named: bool) -> str:
    """What a person reads of one target."""
    from millstream.diagnostics.render import render

    checked, pipeline = report.checked, report.loaded.pipeline if report.loaded else None
    promised = [promise.plain() for promise in checked.promises]
    words = render(checked.findings, checked.texts, "text", colored(sys.stdout), promised)
    if not checked.findings:
        words = f"{counts(pipeline) if pipeline else report.target.name}, no findings\n\n{words}"
    return f"{report.target.name}\n\n{words}\n" if named else words


def _machine(reports: Sequence[Report], form: str) -> str:
    """What a program reads of all targets together."""
    from millstream.analysis.pages import page
    from millstream.diagnostics.render import render

    findings = [found for report in reports for found in report.checked.findings]
    texts = {name: text for report in reports for name, text in report.checked.texts.items()}
    promised = [
        {**promise.plain(), "target": report.target.name}
        for report in reports
        for promise in report.checked.promises
    ]
    pages = {code: text for code in {found.code for found in findings} if (text := page(code))}
    return render(findings, texts, form, False, promised, pages)  # type: ignore[arg-type]  # noqa: FBT003 - colour


def total(reports: Sequence[Report]) -> str:
    """`3 checked: 2 without errors, 1 with`, and how many findings there are."""
    from millstream.diagnostics.text import summary

    bad = sum(report.exit_code > 0 for report in reports)
    findings = [found for report in reports for found in report.checked.findings]
    said = f"{len(reports)} checked: {len(reports) - bad} without errors, {bad} with errors"
    return f"{said} ({summary(findings)})" if findings else said


def counts(pipeline: Pipeline) -> str:
    """`ecommerce: 4 sources, 2 views, 2 queries`."""
    parts = ((pipeline.sources, "source"), (pipeline.views, "view"), (pipeline.queries, "query"))
    words = [f"{len(of)} {word if len(of) == 1 else _plural(word)}" for of, word in parts]
    return f"{pipeline.name}: {', '.join(words)}"


def _plural(word: str) -> str:
    return "queries" if word == "query" else f"{word}s"


def _targets(words: Sequence[Path], file: Path | None) -> tuple[list[Target], list[str]]:
    """What is to be checked, and the arguments of a script: all from the first word that is no file."""
    from millstream.runtime.targets import Kind, targets

    if words and file:
        raise WrongUse("-f names a spec, and targets are given too", "leave -f out")
    if not words:
        return targets([find_spec(file)]), []
    paths = list(takewhile(Path.exists, words))
    rest = [str(word) for word in words[len(paths) :]]
    found = targets(paths)
    if rest and [target.kind for target in found] != [Kind.SCRIPT]:
        if rest[0].startswith("-"):
            raise _no_option(rest[0])
        targets([Path(rest[0])])
    return found, rest


def _no_option(word: str) -> click.NoSuchOption:
    """What click says of an option that there is none of, with the nearest."""
    from difflib import get_close_matches

    context = click.get_current_context()
    known = [name for option in context.command.params for name in option.opts if name.startswith("--")]
    name = word.partition("=")[0]
    return click.NoSuchOption(name, possibilities=get_close_matches(name, known), ctx=context)


def _refuse_odd(chosen: dict[str, bool], form: str) -> None:
    """Options that do not go together."""
    edits = chosen["fix"] or chosen["unsafe_fixes"] or chosen["diff"]
    if chosen["watch"] and edits:
        raise WrongUse("--watch does not change the files that it watches", "leave one of the options out")
    if chosen["watch"] and form not in ("text", "concise"):
        raise WrongUse(f"--watch prints to people, not as {form}", "leave out --format, or take concise")
    if chosen["diff"] and form != "text":
        raise WrongUse(f"--diff prints a patch, not {form}", "leave one of the options out")


def _fixed(checker: Checker, report: Report, *, unsafe: bool) -> Report:
    """Make the edits of a target's findings and tell them; the report of what is left."""
    from millstream.diagnostics.snippet import printable
    from millstream.runtime.fixing import edits, fix

    done = fix(report, lambda: checker.again(report.target), unsafe=unsafe)
    progress("")
    for change in done.changes:
        name, what = change.edit.file, change.finding
        click.echo(printable(f"fixed {name}:{change.edit.line + 1} {what.code} {what.fix}"), err=True)
    if left := len(edits(done.report.checked.findings, unsafe=True)):
        option = "--diff --unsafe-fixes" if not unsafe else "--diff"
        left_out = "edit was" if left == 1 else "edits were"
        click.echo(f"{left} {left_out} not made; see: millstream check {option}", err=True)
    return done.report


def _diff(reports: Sequence[Report], *, unsafe: bool) -> int:
    """Print what the edits would change; 1 when they would change anything."""
    from millstream.runtime.fixing import difference

    progress("")
    parts = [difference(report.checked.findings, unsafe=unsafe) for report in reports]
    click.echo("".join(parts), nl=False)
    return max([1 if any(parts) else 0, *(report.exit_code for report in reports)])


def progress(words: str) -> None:
    """One line that is overwritten, on a terminal only."""
    if sys.stderr.isatty():
        click.echo(f"\r\x1b[K{words}", nl=False, err=True)
