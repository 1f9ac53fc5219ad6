"""Whatever the text, loading it gives a model or findings, and every place lies in the file."""

from __future__ import annotations

from pathlib import Path

from hypothesis import example, given, settings
from hypothesis import strategies as st

from millstream.diagnostics.render import render
from millstream.pipeline.load.document import parse_yaml
from millstream.pipeline.spec_file import load_text
from millstream.spec.duration import Duration

KEYS = [
    "name",
    "sources",
    "views",
    "queries",
    "defaults",
    "trigger",
    "to",
    "from",
    "kafka",
    "delta",
    "postgres",
    "schema",
    "watermark",
    "params",
    "spark",
    "folder",
    "static",
    "format",
    "sql",
    "python",
    "file",
    "checkpoints",
    "output_mode",
]
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(["${X}", "$$", "${X:-1}", "10 seconds"]),
)
NAMES = st.one_of(st.sampled_from(KEYS), st.text(max_size=5))
TREES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=30,
)
SPECS = st.fixed_dictionaries(
    {},
    optional={
        "name": LEAVES,
        "defaults": TREES,
        "views": TREES | st.dictionaries(NAMES, TREES, max_size=3),
        "sources": TREES | st.dictionaries(NAMES, st.dictionaries(NAMES, TREES, max_size=4), max_size=3),
        "queries": TREES | st.dictionaries(NAMES, st.dictionaries(NAMES, TREES, max_size=4), max_size=3),
    },
)
YAML_ISH = st.text(alphabet="abk:{}[]-|>&*!#'\"\\$ \n\r\t,?%@`.0é\u2028\x85😀\ufeff", max_size=80)


def load(text: str, *overrides: str) -> None:
    loaded = load_text("pipeline.yml", text, Path("nowhere"), {}, overrides)

    assert loaded.pipeline is not None or loaded.findings
    lines = text.count("\n") + text.count("\r") + 1
    for finding in loaded.findings:
        assert finding.message
        if finding.span:
            assert finding.span.file == "pipeline.yml"
            assert 1 <= finding.span.line <= finding.span.end_line <= lines
            assert finding.span.column >= 1
    for form in ("text", "concise", "json", "github", "sarif"):
        render(loaded.findings, loaded.texts, form)


@given(st.text() | YAML_ISH)
@example("\ud800")
@example("a: &a [*a]")
@example("[" * 50_000)
@example("{a: " * 50_000)
@example("- " * 50_000)
@example("? " * 5_000)
@example("a: 1\n---\nb: 2")
@example("a: !!python/object:os.system x")
@example("<<: {a: 1}")
@example("[a]: 1")
@example("")
@settings(deadline=None)
def test_any_text_gives_a_model_or_findings(text: str) -> None:
    load(text)


@given(SPECS)
@settings(max_examples=200, deadline=None)
def test_any_tree_gives_a_model_or_findings(tree: object) -> None:
    import yaml

    load(yaml.safe_dump(tree, allow_unicode=True))


@settings(deadline=None)
@given(
    st.lists(
        st.text(max_size=12)
        | st.sampled_from(["a.b=c", "sources.a.kafka=1", "queries.q.to.0=x", "name=[", "=", "views.a=b"])
    )
)
def test_any_override_gives_a_model_or_findings(overrides: list[str]) -> None:
    load("name: a\nsources: {a: {kafka: x}}\nqueries: {q: {to: [{delta: p}]}}", *overrides)


@settings(deadline=None)
@given(st.text(alphabet="ab \n'\"\\\t$é😀", max_size=40), st.sampled_from(["|", ">", "'", '"', ""]))
def test_each_visible_character_of_a_scalar_has_its_place(value: str, style: str) -> None:
    import yaml

    text = "views:\n  v: " + yaml.safe_dump(value, default_style=style or None, allow_unicode=True, width=20)
    text = text.replace("\n...\n", "\n").replace("\n", "\n  ")
    document = parse_yaml("pipeline.yml", text)
    scalar = document.scalars.get(("views", "v"))
    if scalar is None:
        return

    places = scalar.places(text)

    assert len(places) == len(scalar.value) + 1
    assert places == sorted(places)
    for char, place in zip(scalar.value, places, strict=False):
        if not char.isspace() and text[place] != "\\":
            assert text[place] == char


@given(
    st.lists(
        st.tuples(
            st.integers(0, 10**6), st.sampled_from(["milliseconds", "s", "minutes", "h", "day", "weeks"])
        ),
        min_size=1,
        max_size=3,
    )
)
def test_a_duration_reads_what_it_writes(parts: list[tuple[int, str]]) -> None:
    duration = Duration(" ".join(f"{count} {unit}" for count, unit in parts))

    assert Duration(str(duration)) == duration
    assert Duration(str(duration)).micros == duration.micros


def test_aliases_that_grow_without_bound_are_refused() -> None:
    bomb = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 40))

    document = parse_yaml("pipeline.yml", bomb)

    assert document.is_unreadable


def test_a_file_beyond_the_limit_is_refused() -> None:
    assert parse_yaml("pipeline.yml", "x" * 2_000_000).is_unreadable
