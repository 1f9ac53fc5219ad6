"""A password or token is written in the spec instead of taken from a variable or a file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from millstream.analysis.rule_context import Code, Facts
from millstream.analysis.text_edits import replace_span
from millstream.diagnostics.lines import TextLines
from millstream.spec.base import Spec
from millstream.spec.secrets.secret import Secret
from millstream.spec.secrets.written_secret import find_written_secret

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.connectors.api.values.problem import Problem
    from millstream.diagnostics.finding import Edit, Finding

    Path = tuple[str | int, ...]

CODE = Code.of(__name__)


def check(facts: Facts) -> Iterator[Finding]:
    """Report each setting whose name or form shows a secret, in the text before variables are substituted.

    Options that a connector refuses, such as a password among Kafka's `options`, are reported by MS302 or MS501.
    No message repeats the secret.
    """
    refused_options = list(_list_refused_options(facts))
    for path, value in _list_values(facts):
        scalar = facts.places.scalar(*path)
        if scalar is None or any(path[: len(prefix)] == prefix for prefix in refused_options):
            continue
        match = find_written_secret(str(path[-1]), scalar.value, is_secret=isinstance(value, Secret))
        if match is None:
            continue
        secret_kind, start, stop = match
        variable = _suggest_variable(facts, path, secret_kind)
        yield CODE.warning(
            f"{_describe_owner(path)}: '{path[-1]}' contains a {secret_kind} that is written in the spec",
            facts.places.value(*path),
            why="everyone who can read the spec or its history can read this secret, and the secret cannot differ "
            "between environments",
            fix=f"use a variable, such as ${{{variable}}}, set in the environment or a .env file",
            edit=_build_edit(facts, path, start, stop, variable),
            query=str(path[1]) if path[0] == "queries" else None,
        )


def _list_values(facts: Facts) -> Iterator[tuple[Path, object]]:
    """Yield the settings that may contain a secret, each with its path."""
    pipeline = facts.pipeline
    for name, source in pipeline.sources.items():
        yield from _list_spec_values(source.source, ("sources", name, "source"))
    for query, number, sink in facts.sinks():
        yield from _list_spec_values(sink.sink, ("queries", query, "to", number, "sink"))
    if pipeline.dead_letters is not None:
        yield from _list_spec_values(pipeline.dead_letters.box, ("dead_letters", "box"))
    yield ("alerts_to",), pipeline.alerts_to
    for key, value in pipeline.spark.items():
        yield ("spark", key), value


def _list_spec_values(spec: Spec, path: Path) -> Iterator[tuple[Path, object]]:
    for field in type(spec).model_fields:
        value, here = getattr(spec, field), (*path, field)
        if isinstance(value, Spec):
            yield from _list_spec_values(value, here)
        elif isinstance(value, Mapping):
            yield from (((*here, str(key)), item) for key, item in value.items())
        elif isinstance(value, Secret | str):
            yield here, value


def _list_refused_options(facts: Facts) -> Iterator[Path]:
    """Yield the paths of options that their connector refuses."""
    for name, source in facts.pipeline.sources.items():
        yield from _list_option_paths(("sources", name, "source"), source.source.problems())
    for query, number, sink in facts.sinks():
        problems = sink.sink.problems(facts.pipeline.queries[query].output_mode)
        yield from _list_option_paths(("queries", query, "to", number, "sink"), problems)


def _list_option_paths(path: Path, problems: list[Problem]) -> Iterator[Path]:
    for problem in problems:
        if problem.field == "options":
            yield (*path, "options", *(() if problem.key is None else (problem.key,)))


def _describe_owner(path: Path) -> str:
    """Describe the section that a setting belongs to, for a message."""
    if path[0] in ("sources", "queries"):
        return f"{'source' if path[0] == 'sources' else 'query'} '{path[1]}'"
    return f"section '{path[0]}'" if len(path) > 1 else "pipeline"


def _suggest_variable(facts: Facts, path: Path, secret_kind: str) -> str:
    """Suggest a variable name from the connector (or the section) and the kind of secret."""
    match path:
        case ("sources", name, *_):
            owner = facts.pipeline.sources[str(name)].source.kind
        case ("queries", query, "to", int(number), *_):
            owner = facts.pipeline.queries[str(query)].to[number].sink.kind
        case _:
            owner = str(path[0])
    return f"{owner}_{secret_kind}".upper()


def _build_edit(facts: Facts, path: Path, start: int, stop: int, variable: str) -> Edit | None:
    """Replace these characters of a value with the variable; quote the value where a brace would end it."""
    places = facts.places
    scalar = places.scalar(*path)
    if scalar is None or places.document is None or scalar.style in ("|", ">"):
        return None
    new_value = scalar.value[:start] + f"${{{variable}}}" + scalar.value[stop:]
    lines = TextLines(places.document.text)
    span = lines.span(places.file, scalar.start, scalar.stop)
    is_in_braces = re.search(r"[{\[]", lines.line(span.line)[: span.column - 1])
    if scalar.style or is_in_braces:
        new_value = (
            "'" + new_value.replace("'", "''") + "'"
            if '"' in new_value or "\\" in new_value
            else f'"{new_value}"'
        )
    return replace_span(places, span, new_value)
