"""`millstream explain`: explain a finding, the settings of a kind, or the steps of a query."""

from __future__ import annotations

import json
import textwrap
from typing import TYPE_CHECKING, Any

import click

from millstream.analysis.explain.glossary import find_term, read_terms
from millstream.cli.explain.page_rendering import page_for_readers, print_page
from millstream.cli.project import complete_query, find_spec, open_project, project_options
from millstream.cli.table import terminal_width
from millstream.connectors.api.values.replay_behaviour import Replayability
from millstream.diagnostics.failure import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from millstream.pipeline.spec_file import LoadedSpec


@click.command("explain", short_help="Explain a finding, a source or sink kind, a query, or a term.")
@click.argument("what", metavar="CODE|KIND|QUERY|TERM", shell_complete=complete_query)
@project_options
@click.option("--fast", is_flag=True, help="Do not start Spark; explain a query without its plan.")
@click.option("--json", "as_json", is_flag=True, help="Print the explanation of a query as one JSON object.")
def command(
    what: str,
    file: Path | None,
    overrides: Sequence[str],
    env_file: Path | None,
    *,
    fast: bool,
    as_json: bool,
) -> None:
    """Explain a finding (MS201), a kind of source or sink (kafka), a query of the spec, or a term (watermark).

    For a query, print the path from its sources to its sinks, each operator of its plan and the state that
    the operator stores, what happens to a late row and after a crash, and the delivery guarantee of each
    sink. No broker or database is contacted.
    """
    from millstream.connectors import registry

    if what.upper().startswith("MS") and what[2:].isdigit():
        print_page(page_for_readers(code_page(what.upper())))
        return
    kinds: dict[str, list[Any]] = {}
    for group in (registry.sources(), registry.sinks()):
        for name, kind in group.items():
            kinds.setdefault(name, []).append(kind)
    # A query may have the name of a kind. An option of the spec or of queries selects the query.
    if what in kinds and not (file or as_json or fast):
        click.echo("\n".join(text for kind in kinds[what] for text in describe_kind(kind)))
        return
    term = None if file or as_json or fast else find_term(what)
    try:
        find_spec(file)
    except InvalidInput:
        if term:
            _print_term(term)
            return
        raise InvalidInput(
            _unknown(what, [*sorted(kinds), *read_terms()]),
            "name a code, a kind, a query of a spec, or a term",
        ) from None
    loaded = open_project(file, overrides, env_file)
    assert loaded.pipeline is not None
    if what not in loaded.pipeline.queries:
        if term:
            _print_term(term)
            return
        known = loaded.pipeline.queries
        raise InvalidInput(_unknown(what, [*known, *kinds, *read_terms()]), f"queries: {', '.join(known)}")
    _query(loaded, what, fast=fast, as_json=as_json)


def _print_term(term: str) -> None:
    print_page(f"# {term}\n\n{read_terms()[term]}\n")


def _query(loaded: LoadedSpec, name: str, *, fast: bool, as_json: bool) -> None:
    from millstream.cli.check.check import check_with_spark
    from millstream.cli.explain.query_explanation import explain_query, format_explanation, plan_omitted_note

    plans = () if fast else check_with_spark(loaded).queries
    explanation = explain_query(loaded, name, next((plan for plan in plans if plan.name == name), None))
    if as_json:
        click.echo(json.dumps(explanation.plain(), indent=2))
        return
    click.echo("\n".join(format_explanation(explanation)))
    if fast:
        click.echo(plan_omitted_note([name]), err=True)
    elif not explanation.is_planned:
        click.echo("Spark cannot plan this query; 'millstream check' prints the reason", err=True)


def code_page(code: str) -> str:
    """Return the page of a code. Raises `InvalidInput` if the code does not exist."""
    from millstream.analysis import rule_pages
    from millstream.diagnostics.spec_codes import CODES

    text = rule_pages.read_page(code)
    if text is not None:
        return text
    if code in CODES:
        name, sentence = CODES[code]
        return f"# {name} ({code})\n\n{sentence}\n"
    raise InvalidInput(f"there is no code {code}", "run 'millstream docs rules' for a list of all codes")


def describe_kind(kind: Any) -> Iterator[str]:
    """Yield the description, properties and settings of a source or sink kind."""
    from millstream.spec.field_docs import with_field_docs

    with_field_docs(kind)
    role = "sink" if hasattr(kind, "modes") else "source"
    yield f"{kind.kind} ({role})"
    yield f"  {(kind.__doc__ or '').strip().splitlines()[0]}"
    if role == "sink":
        from millstream.spec.output_mode import OutputMode

        yield f"  output modes: {', '.join(str(mode) for mode in OutputMode if mode in kind.modes)}"
    else:
        ways = [
            word for word, can in (("stream", kind.can_stream), ("static table", kind.can_read_once)) if can
        ]
        yield f"  read as: {', '.join(ways)}; {_describe_replay(kind)}"
    yield "  settings (a single value sets the first):"
    required = [
        name for name, field in kind.model_fields.items() if field.is_required() and name != kind.main
    ]
    names = list(dict.fromkeys([kind.main, *required, *kind.model_fields]))
    width = max(len(name) for name in names)
    for name in names:
        field = kind.model_fields.get(name)
        if field is not None:
            description = " ".join((field.description or "").split())
            indent = " " * (width + 6)
            yield textwrap.fill(
                f"{description}{_default(field)}",
                _terminal_columns(),
                initial_indent=f"    {name:<{width}}  ",
                subsequent_indent=indent,
                break_on_hyphens=False,
            )
    yield ""


def _describe_replay(kind: Any) -> str:
    """Return whether a batch of this kind of source can be read again, as a clause."""
    if kind.is_replayable:
        return "replayable"
    behaviour = kind.model_construct().replay(static=False)
    is_conditional = behaviour.how is Replayability.CONDITIONAL
    return f"replayable on a condition: {behaviour.text}" if is_conditional else "not replayable"


def _default(field: Any) -> str:
    if field.is_required():
        return " Required."
    value = field.get_default(call_default_factory=True)
    # A default that has settings is documented with those.
    if isinstance(value, bool):
        return f" Default: {str(value).lower()}."
    return f" Default: {value}." if isinstance(value, int | float | str) and value != "" else ""


def _terminal_columns() -> int:
    """Return the width for text: the terminal's, or 110 for a pipe."""
    return max(60, terminal_width() or 110)


def _unknown(name: str, names: Sequence[str]) -> str:
    from difflib import get_close_matches

    nearest = get_close_matches(name, names, n=1)
    return f"there is no code, kind, query or term '{name}'" + (
        f"; did you mean '{nearest[0]}'?" if nearest else ""
    )
