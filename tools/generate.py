"""Write docs/reference from the code: each source and sink, the spec, the commands and the codes.

`python tools/generate.py` writes the pages; `--check` writes nothing and ends with 1 when one differs.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import importlib.util
import inspect
import json
import re
import sys
import textwrap
from enum import Enum
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

import click
import yaml
from pydantic import TypeAdapter

from millstream.analysis.pages import page, says
from millstream.analysis.pages import pages as code_pages
from millstream.cli.main import COMMANDS
from millstream.connectors import registry
from millstream.connectors.letters import Box
from millstream.connectors.sink import Sink
from millstream.connectors.source import Source
from millstream.dashboard.names import BUCKETS, METRICS
from millstream.dashboard.shapes import Document
from millstream.diagnostics.catalogue import CODES
from millstream.pipeline import model
from millstream.pipeline.describe import fields, flatten
from millstream.pipeline.kinds import KindEntry
from millstream.spec.base import Spec
from millstream.spec.documented import documented
from millstream.spec.duration import Duration
from millstream.spec.location import Location
from millstream.spec.mode import OutputMode
from millstream.spec.secret import Secret
from millstream.testing import form

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic.fields import FieldInfo

    from millstream.spec.guarantee import Guarantee

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "millstream"
OUT = Path("docs/reference")
MADE = "<!-- Written by tools/generate.py from the code; edit there. -->"
# A terminal of this many columns is what the help texts are laid out for.
WIDTH = 100
WORDS = {
    str: "text",
    int: "whole number",
    float: "number",
    bool: "true or false",
    Duration: "length of time",
    Location: "path or URI",
    form.Rows: "list of rows",
    Any: "any value",
}
# The forms of a test file, each with its heading.
FORMS = {
    form.SuiteForm: "a test file",
    form.CaseForm: "a test",
    form.StepForm: "a step",
    form.RecordForm: "a message",
}
MODES = {mode: f"`{mode}`" for mode in OutputMode}


def pages() -> dict[Path, str]:
    """Every generated page: its path from the root, and its text."""
    made = {OUT / "sources" / f"{name}.md": kind_page(kind) for name, kind in registry.sources().items()}
    made |= {OUT / "sinks" / f"{name}.md": kind_page(kind) for name, kind in registry.sinks().items()}
    made |= {OUT / "dead-letters" / f"{name}.md": box_page(kind) for name, kind in registry.boxes().items()}
    made[OUT / "spec.md"] = spec_page()
    made[OUT / "cli.md"] = cli_page()
    made[OUT / "rules.md"] = rules_page()
    made[OUT / "tests.md"] = tests_page()
    made[OUT / "metrics.md"] = metrics_page()
    made[OUT / "page-api.schema.json"] = state_schema()
    return made


def kind_page(kind: type[Source] | type[Sink]) -> str:
    """A source's or sink's page: its prose, its facts and its settings."""
    role = "source" if issubclass(kind, Source) else "sink"
    prose = PACKAGE / "connectors" / registry.folder(kind) / f"{role}.md"
    parts = [f"# {kind.kind} {role}", MADE, summary(kind)]
    if prose.is_file():
        parts.append(re.sub(r"\A#[^\n]*\n+", "", prose.read_text(encoding="utf-8")).strip())
    facts = source_facts(kind) if issubclass(kind, Source) else sink_facts(kind)
    parts += ["## Facts", "\n".join(f"- {fact}" for fact in facts), "## Settings", table(kind)]
    for inner in models_in(kind):
        parts += [f"### {inner.__name__}", summary(inner), table(inner)]
    return joined(parts)


def box_page(kind: type[Box]) -> str:
    """The page of a place of dead letters: its prose and its settings."""
    prose = PACKAGE / "connectors" / registry.folder(kind) / "letters.md"
    text = re.sub(r"\A#[^\n]*\n+", "", prose.read_text(encoding="utf-8")).strip()
    parts = [f"# Dead letters in {kind.kind}", MADE, summary(kind), text, "## Settings", table(kind)]
    for inner in models_in(kind):
        parts += [f"### {inner.__name__}", summary(inner), table(inner)]
    return joined(parts)


def source_facts(kind: type[Source]) -> Iterator[str]:
    """What the analyser and the runtime know about a source kind."""
    yield f"A bare value stands for `{kind.main}`."
    ways = [
        word
        for word, can in (("a stream", kind.streams), ("a static table (`static: true`)", kind.static))
        if can
    ]
    yield f"Can be read as {' and as '.join(ways)}."
    yield (
        "Replayable: reading the same offsets again gives the same rows."
        if kind.replayable
        else "Not replayable: a batch read again may have other rows, and no sink behind it is exactly-once."
    )
    if kind.payload:
        yield "Rows are messages: `format` and `schema` decode their bytes, `keep` says what stands beside."
    if kind.columns and not kind.payload:
        yield f"Columns: `{kind.columns}`."
    if kind.place:
        place = ", ".join(f"`{column.lstrip('_')}`" for column in kind.place)
        yield f"A malformed record is named by {place}."


def sink_facts(kind: type[Sink]) -> Iterator[str]:
    """What the analyser and the runtime know about a sink kind."""
    yield f"A bare value stands for `{kind.main}`."
    yield f"Output modes: {', '.join(text for mode, text in MODES.items() if mode in kind.modes)}."
    told = promises(kind)
    for (guarantee, why), modes in told.items():
        where = "" if len(told) == 1 else f" in {' and '.join(MODES[mode] for mode in modes)} mode"
        yield f"**{guarantee}**{where}, from a replayable source: {why}."


def promises(kind: type[Sink]) -> dict[tuple[Guarantee, str], list[OutputMode]]:
    """Each guarantee of a kind with its reason, and the modes it holds in."""
    plain = kind.model_construct()
    found: dict[tuple[Guarantee, str], list[OutputMode]] = {}
    for mode in OutputMode:
        if mode in kind.modes:
            found.setdefault(plain.guarantee(mode), []).append(mode)
    return found


def spec_page() -> str:
    """Every field of the model, from the whole pipeline down to a watermark."""
    intro = """\
        A spec is one YAML file, `pipeline.yml` by default. This page lists each key. An unknown key is an
        error that names the nearest known one. Relative paths start at the spec's folder.

        `${VAR}`, `${VAR:-default}`, `${VAR:?message}` and `${file:PATH}` are replaced in values after YAML is
        read, never in SQL; `$$` is a dollar. A length of time is written as Spark writes it: `10 seconds`,
        `1 hour 30 minutes`, or short as `90s`."""
    parts = ["# The spec", MADE, textwrap.dedent(intro)]
    for one in (model.Pipeline, *models_in(model.Pipeline)):
        parts += [f"## {one.__name__}", summary(one)]
        if issubclass(one, KindEntry):
            parts.append(kinds_line(one))
        if not issubclass(one, KindEntry) or len(fields(one)) > 1:
            parts.append(table(one))
    return joined(parts)


def kinds_line(entry: type[KindEntry]) -> str:
    """The kinds that may be the key of an entry, with links to their pages."""
    links = ", ".join(f"[`{name}`]({entry.manual}/{name}.md)" for name in entry.kinds())
    more = len(fields(entry)) > 1
    return f"One key names the kind: {links}." + (" The others are:" if more else "")


def cli_page() -> str:
    """The help of every command that there is."""
    parts = ["# Commands", MADE]
    for name, what in COMMANDS.items():
        if importlib.util.find_spec(f"millstream.cli.{name}") is not None:
            found: click.Command = importlib.import_module(f"millstream.cli.{name}").command
            parts += [f"## millstream {name}", what, *helps(found, f"millstream {name}")]
    return joined(parts)


def helps(command: click.Command, name: str) -> Iterator[str]:
    """The help of a command, then of the commands inside it."""
    context = click.Context(
        command,
        info_name=name,
        terminal_width=WIDTH,
        max_content_width=WIDTH,
        help_option_names=["-h", "--help"],
    )
    yield f"```text\n{command.get_help(context).rstrip()}\n```"
    if isinstance(command, click.Group):
        for inner in command.commands:
            yield from (f"### {name} {inner}", *helps(command.commands[inner], f"{name} {inner}"))


def tests_page() -> str:
    """Every key of a test file."""
    intro = """\
        A test file is YAML below a folder `tests`, with a key `tests` at its top; [how to write
        one](../how-to/test.md) begins with five lines. An unknown key is an error that names the nearest known
        one, and so is a source, column or query that the pipeline does not have. Paths start at the test file's
        folder.

        Times without a zone are in UTC. A row is columns by name. Wanted rows are compared with rows that came by the
        columns they name, in any order, each with one, as values of the column's type: a time as a moment, a decimal
        as a number, `{a: 1}` with the field `a` of a struct or the key `a` of a map, binary as text or base64.
        Null equals null alone."""
    parts = ["# Test files", MADE, textwrap.dedent(intro)]
    for one, title in FORMS.items():
        parts += [f"## {title[0].upper()}{title[1:]}", summary(one).partition("\n")[2].strip(), table(one)]
    page = joined(parts)
    for one, title in FORMS.items():
        page = page.replace(
            f"[{one.__name__}](#{one.__name__.lower()})", f"[{title}](#{title.replace(' ', '-')})"
        )
    return page


def rules_page() -> str:
    """Every code a finding may have, by number."""
    intro = (
        "Each finding of `millstream check` has a code that keeps its meaning for ever. "
        "`millstream explain CODE` tells the same on a terminal.\n\n"
        "A comment on the line of a finding, or above it, allows it: `# millstream: allow MS201 — reason`, with "
        "`--` in place of `#` in SQL. The reason is required, and a comment that allows nothing is itself a "
        "finding. Codes of rules, those that name ids of the catalogue, can be allowed.\n\n"
        "The last column tells what Spark itself does with such a pipeline: whether it says nothing, refuses the "
        "query at its start, or fails while it runs. A test holds each page to it."
    )
    rows = [
        f"| {code} | {f'[{name}]({link})' if link else name} | {severity(code)} | {escaped(what)} | {spark(code)} |"
        for code, (name, what, link) in sorted(codes().items())
    ]
    head = ["| code | name | severity | what it says | Spark itself |", "| --- | --- | --- | --- | --- |"]
    return joined(["# Codes", MADE, intro, "\n".join([*head, *rows])])


def metrics_page() -> str:
    """Every metric of a run."""
    intro = """\
        `/metrics` of the [live page](../how-to/live-page.md) gives these in Prometheus' text format. Times are
        seconds since 1970, durations seconds, sizes bytes. Counters begin at 0 with each run. A sample that is not
        known is absent.
        [How to watch a run](../how-to/monitor.md) has a dashboard and alert rules made of them."""
    rows = [
        f"| `{one.name}` | {one.kind} | {', '.join(f'`{label}`' for label in one.labels)} | {escaped(one.what)} |"
        for one in METRICS
    ]
    head = ["| metric | kind | labels | what it is |", "| --- | --- | --- | --- |"]
    bounds = ", ".join(f"{bound:g}" for bound in BUCKETS)
    end = f"Buckets of histograms end at {bounds} seconds and at infinity."
    return joined(["# Metrics", MADE, textwrap.dedent(intro), "\n".join([*head, *rows]), end])


def state_schema() -> str:
    """The JSON schema of `/api/state`."""
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **TypeAdapter(Document).json_schema(mode="serialization"),
    }
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def severity(code: str) -> str:
    """How grave the findings of a code are, as its page shows them."""
    shown = re.findall(rf"(?:#|--) (error|warning|info): (?:\[MS\d{{3}}\] ?)*\[{code}\]", page(code) or "")
    return " or ".join(word for word in ("error", "warning", "info") if word in shown) or "error"


def spark(code: str) -> str:
    """What Spark itself does, as the code's page says; nothing where Spark has no part in it."""
    return says(page(code) or "") or ""


def codes() -> dict[str, tuple[str, str, str]]:
    """By code: the name, one sentence, and the link to its page from docs/reference, or nothing."""
    found = {code: (name, what, link(code)) for code, (name, what) in CODES.items()}
    for file in sorted(PACKAGE.rglob("*.py")):
        text = file.read_text(encoding="utf-8")
        for code, name in re.findall(r'Code\(\s*"(MS\d{3})",\s*"([\w-]+)"', text):
            found[code] = (name, sentence(text), link(code))
    for file in sorted((PACKAGE / "analysis" / "rules").glob("ms*.py")):
        code, name = file.stem[:5].upper(), file.stem[6:].replace("_", "-")
        found[code] = (name, sentence(file.read_text(encoding="utf-8")), link(code))
    return found


def link(code: str) -> str:
    """The way from docs/reference to the page of a code, or nothing."""
    file = code_pages().get(code)
    return f"../../{file.relative_to(ROOT).as_posix()}" if file else ""


def sentence(source: str) -> str:
    """The first line of a module's docstring."""
    return (ast.get_docstring(ast.parse(source)) or "").partition("\n")[0]


def table(one: type[Spec]) -> str:
    """A model's fields: key, type, default, meaning."""
    known = fields(documented(one))
    if issubclass(one, KindEntry):
        known = {key: field for key, field in known.items() if key != one.kind_field}
    rows = [
        f"| `{key}` | {kind_of(field)} | {default(field)} | {escaped(meaning(field))} |"
        for key, field in known.items()
    ]
    return "\n".join(["| key | type | default | what it is |", "| --- | --- | --- | --- |", *rows])


def kind_of(field: FieldInfo) -> str:
    """A field's type in words."""
    return " or ".join(
        dict.fromkeys(word(part) for part in flatten(field.annotation) if part is not type(None))
    )


def word(part: Any) -> str:
    """One alternative of a type in words."""
    if part in (form.Rows, Any):
        return WORDS[part]
    origin, inner = get_origin(part), get_args(part)
    if origin is Literal:
        return " or ".join(f"`{spelled(value)}`" for value in inner)
    if origin is dict:
        values = " or ".join(dict.fromkeys(word(value) for value in flatten(inner[1])))
        return "names with a value each" if len(set(flatten(inner[1]))) > 1 else f"names, each with: {values}"
    if origin in (tuple, list):
        return f"list of {' or '.join(dict.fromkeys(map(word, flatten(inner[0]))))}"
    if not isinstance(part, type):
        return "function" if "Callable" in str(part) else str(part)
    if issubclass(part, Enum):
        return " or ".join(f"`{member.value}`" for member in part)
    if issubclass(part, Secret):
        return "secret"
    if issubclass(part, Spec):
        return f"[{part.__name__}](#{part.__name__.lower()})"
    return WORDS.get(part, "time with a zone" if "datetime" in part.__name__.lower() else part.__name__)


def default(field: FieldInfo) -> str:
    """A field's default as a spec would write it."""
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    if value is None or value in ((), {}) or isinstance(value, Spec):
        return ""
    return f"`{spelled(value.value if isinstance(value, Enum) else value)}`"


def meaning(field: FieldInfo) -> str:
    """A field's docstring, what each word of a choice means, and an example."""
    said = " ".join((field.description or "").split())
    for part in flatten(field.annotation):
        if isinstance(part, type) and issubclass(part, Enum):
            said += "".join(f" `{value}`: {what}" for value, what in member_docs(part).items())
    examples = field.examples or []
    return f"{said} Example: {' or '.join(f'`{spelled(one)}`' for one in examples)}." if examples else said


def spelled(value: Any) -> str:
    """A value on one line, as a spec would have it."""
    if isinstance(value, str):
        return str(value)
    return (
        yaml.safe_dump(value, default_flow_style=True, width=1000, sort_keys=False)
        .removesuffix("...\n")
        .strip()
    )


def member_docs(choice: type[Enum]) -> dict[str, str]:
    """The docstring below each member of an enumeration, by the member's value; Python itself drops them."""
    body = ast.parse(textwrap.dedent(inspect.getsource(choice))).body[0].body  # type: ignore[attr-defined]
    found = {}
    for before, after in pairwise(body):
        if (
            isinstance(before, ast.Assign)
            and isinstance(after, ast.Expr)
            and isinstance(after.value, ast.Constant)
        ):
            found[ast.literal_eval(before.value)] = " ".join(str(after.value.value).split())
    return found


def models_in(one: type[Spec]) -> list[type[Spec]]:
    """The models that a model's fields hold, however deep, each once; kinds are left to their own pages."""
    found: list[type[Spec]] = []

    def walk(annotation: Any) -> None:
        for part in flatten(annotation):
            for inner in get_args(part):
                walk(inner)
            if (
                isinstance(part, type)
                and issubclass(part, Spec)
                and part not in (*found, Source, Sink, Box, one)
            ):
                found.append(part)
                for field in fields(part).values():
                    walk(field.annotation)

    for field in fields(one).values():
        walk(field.annotation)
    return found


def summary(one: type) -> str:
    """A class's docstring as paragraphs."""
    return inspect.cleandoc(one.__doc__ or "")


def escaped(text: str) -> str:
    """Text that may stand in a cell of a table."""
    return text.replace("|", "\\|")


def joined(parts: list[str]) -> str:
    """Paragraphs as one page."""
    return "\n\n".join(part for part in parts if part) + "\n"


def main() -> int:
    """Write the pages or compare them; 1 when they differ."""
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("--check", action="store_true", help="write nothing; end with 1 when a page differs")
    check = reader.parse_args().check
    made = pages()
    known = {
        path.relative_to(ROOT)
        for folder in ("sources", "sinks", "dead-letters")
        for path in (ROOT / OUT / folder).glob("*.md")
    }
    stale = sorted(known - set(made))
    for path, text in made.items():
        here = ROOT / path
        if not here.is_file() or here.read_text(encoding="utf-8") != text:
            stale.append(path)
            if not check:
                here.parent.mkdir(parents=True, exist_ok=True)
                here.write_text(text, encoding="utf-8")
    for path in known - set(made) if not check else ():
        (ROOT / path).unlink()
    for path in stale:
        print(f"{path} {'is not what the code says; run: python tools/generate.py' if check else 'written'}")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
