"""`millstream explain`: a finding's page, a kind's settings, or what a query does, step by step."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from millstream.cli.project import find_spec, open_project, project_options
from millstream.diagnostics.failure import WrongUse

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from millstream.pipeline.load import Loaded


@click.command("explain", short_help="Explain a finding, a source or a sink, or a query.")
@click.argument("what", metavar="CODE|KIND|QUERY")
@project_options
@click.option("--fast", is_flag=True, help="A query without its plan: starts no Spark.")
@click.option("--json", "as_json", is_flag=True, help="A query as a JSON object.")
def command(
    what: str,
    file: Path | None,
    overrides: Sequence[str],
    env_file: Path | None,
    *,
    fast: bool,
    as_json: bool,
) -> None:
    """Print the page of a finding (MS201), of a source or sink kind (kafka), or what a query does.

    Of a query: where its rows come from and go, each operator of its plan with the state it keeps, what a late
    row and a crash do to it, and what each sink keeps. Nothing is connected to.
    """
    from millstream.connectors import registry

    if what.upper().startswith("MS") and what[2:].isdigit():
        click.echo(page(what.upper()), nl=False)
        return
    kinds: dict[str, list[Any]] = {}
    for found in (registry.sources(), registry.sinks()):
        for name, kind in found.items():
            kinds.setdefault(name, []).append(kind)
    # A query may be called as a kind is; who says which spec means its query.
    if what in kinds and not (file or as_json or fast):
        click.echo("\n".join(text for kind in kinds[what] for text in describe(kind)))
        return
    try:
        find_spec(file)
    except WrongUse:
        raise WrongUse(_unknown(what, sorted(kinds)), "name a code, a kind, or a query of a spec") from None
    loaded = open_project(file, overrides, env_file)
    assert loaded.pipeline is not None
    if what not in loaded.pipeline.queries:
        known = loaded.pipeline.queries
        raise WrongUse(_unknown(what, [*known, *kinds]), f"queries: {', '.join(known)}")
    _query(loaded, what, fast=fast, as_json=as_json)


def _query(loaded: Loaded, name: str, *, fast: bool, as_json: bool) -> None:
    from millstream.cli.check import with_spark
    from millstream.cli.story import lines, story, unplanned

    plans = () if fast else with_spark(loaded).queries
    told = story(loaded, name, next((plan for plan in plans if plan.name == name), None))
    if as_json:
        click.echo(json.dumps(told.plain(), indent=2))
        return
    click.echo("\n".join(lines(told)))
    if fast:
        click.echo(unplanned([name]), err=True)
    elif not told.planned:
        click.echo("Spark could not plan it; millstream check says why", err=True)


def page(code: str) -> str:
    """The page of a code. Raises `WrongUse` for one that is not given to anything."""
    from millstream.analysis import pages
    from millstream.diagnostics.catalogue import CODES

    text = pages.page(code)
    if text is not None:
        return text
    if code in CODES:
        name, sentence = CODES[code]
        return f"# {name} ({code})\n\n{sentence}\n"
    raise WrongUse(f"there is no code {code}", "see docs/reference/rules.md for all codes")


def describe(kind: Any) -> Iterator[str]:
    """A kind's own words, its facts, and its settings."""
    from millstream.spec.documented import documented

    documented(kind)
    role = "sink" if hasattr(kind, "modes") else "source"
    yield f"{kind.kind} ({role})"
    yield f"  {(kind.__doc__ or '').strip().splitlines()[0]}"
    if role == "sink":
        from millstream.spec.mode import OutputMode

        yield f"  output modes: {', '.join(str(mode) for mode in OutputMode if mode in kind.modes)}"
    else:
        ways = [word for word, can in (("stream", kind.streams), ("static table", kind.static)) if can]
        yield f"  read as: {', '.join(ways)}; {'' if kind.replayable else 'not '}replayable"
    yield "  settings (a bare value is the first):"
    names = [kind.main, *(name for name in kind.model_fields if name != kind.main)]
    wide = max(len(name) for name in names)
    for name in names:
        field = kind.model_fields.get(name)
        if field is not None:
            said = " ".join((field.description or "").split())
            yield f"    {name:<{wide}}  {said}{_default(field)}"
    yield ""


def _default(field: Any) -> str:
    if field.is_required():
        return " Required."
    plain = field.get_default(call_default_factory=True)
    # A default made of settings of its own is told where those are.
    return f" [{plain}]" if isinstance(plain, bool | int | float | str) and plain != "" else ""


def _unknown(what: str, known: Sequence[str]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(what, known, n=1)
    return f"there is nothing called '{what}'" + (f"; did you mean '{near[0]}'?" if near else "")
