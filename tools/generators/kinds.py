"""The pages of sources, sinks and places of dead letters: prose, facts, settings."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from generators.fields import models_in, table
from generators.layout import MADE, OUT, PACKAGE, joined, summary
from millstream.connectors import registry
from millstream.connectors.api.source import Source
from millstream.connectors.api.values.replay_behaviour import Replayability
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from millstream.connectors.api.dead_letters import DeadLetterStore
    from millstream.connectors.api.sink import Sink
    from millstream.spec.guarantee import Guarantee

MODES = {mode: f"`{mode}`" for mode in OutputMode}


def kind_pages() -> dict[Path, str]:
    """The page of every kind that is registered: its path from the root, and its text."""
    result = {OUT / "sources" / f"{name}.md": kind_page(kind) for name, kind in registry.sources().items()}
    result |= {OUT / "sinks" / f"{name}.md": kind_page(kind) for name, kind in registry.sinks().items()}
    return result | {
        OUT / "dead-letters" / f"{name}.md": box_page(kind)
        for name, kind in registry.dead_letter_stores().items()
    }


def kind_page(kind: type[Source] | type[Sink]) -> str:
    """A source's or sink's page: its prose, its facts and its settings; a summary if kinds share the prose."""
    role = "source" if issubclass(kind, Source) else "sink"
    prose = PACKAGE / "connectors" / registry.connector_folder(kind) / f"{role}.md"
    heading, _, text = prose.read_text(encoding="utf-8").partition("\n")
    kinds = kinds_of_page(kind, registry.sources() if role == "source" else registry.sinks())
    if len(kinds) > 1:
        name = kind.kind.upper() if kind.kind.upper() in summary(kind) else kind.kind.capitalize()
        heading = f"# {name} {role}"
    parts = [
        heading,
        MADE,
        *([summary(kind)] if len(kinds) > 1 else []),
        prose_of_kind(text, kind, kinds).strip(),
    ]
    facts = source_facts(kind) if issubclass(kind, Source) else sink_facts(kind)
    parts += ["## Facts", "\n".join(f"- {fact}" for fact in facts), "## Settings", table(kind)]
    for inner in models_in(kind):
        parts += [f"### {inner.__name__}", summary(inner), table(inner)]
    return joined(parts)


def kinds_of_page(
    kind: type[Source] | type[Sink], kinds: Mapping[str, type[Source] | type[Sink]]
) -> list[str]:
    """The kinds that share the prose of this kind."""
    folder = registry.connector_folder(kind)
    return [name for name, item in kinds.items() if registry.connector_folder(item) == folder]


def prose_of_kind(text: str, kind: type[Source] | type[Sink], kinds: list[str]) -> str:
    """The prose that several kinds share, as it is for one of them.

    A part after `<!-- only json csv -->` is for these kinds, up to the next such line or `<!-- all -->`. In YAML
    blocks, every kind of the page and its extension becomes the one of this page.
    """
    pieces = re.split(r"^<!-- (?:all|only ([\w ]+)) -->\n", text, flags=re.MULTILINE)
    parts = [
        part
        for names, part in zip([None, *pieces[1::2]], pieces[::2], strict=True)
        if names is None or kind.kind in names.split()
    ]
    names = "|".join(kinds)
    return re.sub(
        r"^```yaml\n.*?^```$",
        lambda block: re.sub(rf"(?<=[ {{])(?:{names})(?=: )|(?<=\*\.)(?:{names})(?=\")", kind.kind, block[0]),
        "".join(parts),
        flags=re.MULTILINE | re.DOTALL,
    )


def box_page(kind: type[DeadLetterStore]) -> str:
    """The page of a place of dead letters: its prose and its settings."""
    prose = PACKAGE / "connectors" / registry.connector_folder(kind) / "dead_letters.md"
    heading, _, text = prose.read_text(encoding="utf-8").partition("\n")
    parts = [heading, MADE, summary(kind), text.strip(), "## Settings", table(kind)]
    for inner in models_in(kind):
        parts += [f"### {inner.__name__}", summary(inner), table(inner)]
    return joined(parts)


def source_facts(kind: type[Source]) -> Iterator[str]:
    """What the analyser and the runtime know about a source kind."""
    yield f"If only a value is written in place of the settings, it is the value of `{kind.main}`."
    ways = [
        word
        for word, can in (
            ("a stream", kind.can_stream),
            ("a static table (`static: true`)", kind.can_read_once),
        )
        if can
    ]
    yield f"Can be read as {' and as '.join(ways)}."
    behaviour = kind.model_construct().replay(static=False)
    if kind.is_replayable:
        yield "Replayable: reading the same offsets again gives the same rows."
    elif behaviour.how is Replayability.CONDITIONAL:
        yield f"Replayable on a condition: {behaviour.text}."
    else:
        yield (
            "Not replayable: when a batch is read again it may have different rows, so no sink that gets these rows "
            "is exactly-once."
        )
    if kind.has_payload:
        yield (
            "Records are messages: `format` and `schema` decode their bytes, and `keep` adds further columns of the "
            "message."
        )
    if kind.columns and not kind.has_payload:
        yield f"Columns: `{kind.columns}`."
    if kind.place:
        place = ", ".join(f"`{column.lstrip('_')}`" for column in kind.place)
        yield f"The position of a malformed record is given by {place}."


def sink_facts(kind: type[Sink]) -> Iterator[str]:
    """What the analyser and the runtime know about a sink kind."""
    yield f"If only a value is written in place of the settings, it is the value of `{kind.main}`."
    yield f"Output modes: {', '.join(text for mode, text in MODES.items() if mode in kind.modes)}."
    messages = promises(kind)
    for (guarantee, why), modes in messages.items():
        where = "" if len(messages) == 1 else f" in {' and '.join(MODES[mode] for mode in modes)} mode"
        yield f"**{guarantee}**{where}, from a replayable source: {why}."


def promises(kind: type[Sink]) -> dict[tuple[Guarantee, str], list[OutputMode]]:
    """Each guarantee of a kind with its reason, and the modes it holds in."""
    plain = kind.model_construct()
    actual: dict[tuple[Guarantee, str], list[OutputMode]] = {}
    for mode in OutputMode:
        if mode in kind.modes:
            actual.setdefault(plain.guarantee(mode), []).append(mode)
    return actual
