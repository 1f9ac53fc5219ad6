"""The page of the spec: every key, from the whole pipeline down to a watermark."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from generators.fields import models_in, table
from generators.layout import MADE, joined, summary
from millstream.pipeline import model
from millstream.pipeline.introspection import fields_by_key
from millstream.pipeline.kinds import KindEntry

if TYPE_CHECKING:
    from millstream.spec.base import Spec


# Models with a title other than the name of the class; a reader looks for the words of the spec.
TITLES = {
    "SourceEntry": "A source",
    "SinkEntry": "A sink",
    "LettersEntry": "A store of dead letters",
    "Backoff": "Retry",
    "StateVariable": "A state variable",
    "MapState": "A map in state",
}


def spec_page() -> str:
    """Every field of the model, from the whole pipeline down to a watermark."""
    intro = """\
        A spec is one YAML file, `pipeline.yml` by default. This page lists each key. An unknown key is an
        error, whose message names the most similar known key. Relative paths start at the folder of the spec.

        `${VAR}`, `${VAR:-default}`, `${VAR:?message}` and `${file:PATH}` are replaced in values after YAML is read,
        never in SQL; `$$` is a dollar. A length of time is written as in Spark, such as `10 seconds` or `1 hour 30
        minutes`, or in short form, such as `90s`."""
    parts = ["# The spec", MADE, textwrap.dedent(intro)]
    models: list[type[Spec]] = [model.Pipeline, *models_in(model.Pipeline)]
    for item in models:
        parts += [f"## {TITLES.get(item.__name__, item.__name__)}", summary(item)]
        if issubclass(item, KindEntry):
            parts.append(kinds_line(item))
        if not issubclass(item, KindEntry) or len(fields_by_key(item)) > 1:
            parts.append(table(item))
    page = joined(parts)
    for name, title in TITLES.items():
        page = page.replace(
            f"[{name}](#{name.lower()})",
            f"[{title[0].lower()}{title[1:]}](#{title.lower().replace(' ', '-')})",
        )
    return page


def kinds_line(entry: type[KindEntry]) -> str:
    """The kinds that may be the key of an entry, with links to their pages."""
    links = ", ".join(f"[`{name}`]({entry.manual}/{name}.md)" for name in entry.kinds())
    more = len(fields_by_key(entry)) > 1
    return f"One key names the kind: {links}." + (" The other keys are:" if more else "")
