"""What loading finds beside the spec, what replaces its values, and where its SQL stands."""

from __future__ import annotations

from pathlib import Path

import pytest

import millstream as ms
from millstream.pipeline.graph import PipelineGraph
from millstream.pipeline.spec_file import LoadedSpec, load_spec, load_text

HEAD = "name: shop\nsources:\n  clicks: {rate: {}}\n"


def load_here(folder: Path, text: str, *overrides: str, **env: str) -> LoadedSpec:
    (folder / "pipeline.yml").write_text(text)
    return load_spec(folder / "pipeline.yml", env, overrides)


def messages(loaded: LoadedSpec) -> list[str]:
    return [f"{finding.code} {finding.message}" for finding in loaded.findings]


def write_file(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_a_view_stands_in_its_own_file_without_being_named(tmp_path: Path) -> None:
    write_file(tmp_path / "views" / "visits.sql", "SELECT *\nFROM clicks\n")

    loaded = load_here(tmp_path, HEAD + "queries:\n  visits: {to: {console: }}\n")

    assert loaded.findings == []
    assert loaded.pipeline is not None
    assert loaded.pipeline.views["visits"].sql == "SELECT *\nFROM clicks\n"
    span = loaded.places.sql("visits", 14, 20)
    assert (Path(span.file).name, span.line, span.column, span.end_column) == ("visits.sql", 2, 6, 12)
    assert loaded.texts[span.file] == "SELECT *\nFROM clicks\n"


def test_a_view_defined_twice_is_a_finding(tmp_path: Path) -> None:
    write_file(tmp_path / "views" / "visits.sql", "SELECT 1")

    loaded = load_here(tmp_path, HEAD + "views: {visits: SELECT 2}\nqueries:\n  visits: {to: {console: }}\n")

    assert [finding.code for finding in loaded.findings] == ["MS009"]


def test_a_view_whose_file_is_not_there_is_a_finding(tmp_path: Path) -> None:
    text = HEAD + "views: {visits: {file: sql/visits.sql}}\nqueries:\n  visits: {to: {console: }}\n"

    (finding,) = load_here(tmp_path, text).findings

    assert finding.code == "MS011"
    assert "cannot be read: No such file" in finding.message
    assert finding.span is not None
    assert (finding.span.line, finding.span.column) == (4, 24)


def test_functions_are_views_where_something_reads_them(tmp_path: Path) -> None:
    write_file(
        tmp_path / "transforms.py",
        "raise SystemError('not run')\n"
        "def sessions(clicks): ...\n"
        "def daily(sessions): ...\n"
        "def unread(clicks): ...\n"
        "def clicks(): ...\n"
        "def user(clicks): ...\n",
    )
    views = "views: {report: SELECT user FROM daily}\n"

    loaded = load_here(tmp_path, HEAD + views + "queries:\n  report: {to: {console: }}\n")

    assert loaded.findings == []
    assert loaded.pipeline is not None
    pythons = {name: view.python for name, view in loaded.pipeline.views.items()}
    assert pythons == {"report": None, "daily": "transforms:daily", "sessions": "transforms:sessions"}


def test_functions_of_a_file_with_a_byte_order_mark_are_views(tmp_path: Path) -> None:
    write_file(tmp_path / "transforms.py", "\ufeffdef daily(clicks): ...\ndef weekly(daily): ...\n")
    views = "views: {report: SELECT * FROM daily, summary: {python: 'transforms:weekly'}}\n"
    queries = "queries:\n  report: {to: {console: }}\n  summary: {to: {console: }}\n"

    loaded = load_here(tmp_path, HEAD + views + queries)

    assert loaded.findings == []
    assert loaded.pipeline is not None
    assert PipelineGraph.of(loaded.pipeline).reads == {
        "report": ("daily",),
        "summary": ("daily",),
        "daily": ("clicks",),
    }


def test_a_function_called_like_a_column_is_no_view(tmp_path: Path) -> None:
    write_file(tmp_path / "transforms.py", "def daily(clicks): ...\ndef amount(cents): ...\n")
    views = "views: {report: 'SELECT id, amount FROM daily ORDER BY id, amount'}\n"

    loaded = load_here(tmp_path, HEAD + views + "queries:\n  report: {to: {console: }}\n")

    assert loaded.findings == []
    assert loaded.pipeline is not None
    assert set(loaded.pipeline.views) == {"report", "daily"}


def test_hidden_files_of_editors_are_no_views(tmp_path: Path) -> None:
    write_file(tmp_path / "views" / "visits.sql", "SELECT * FROM clicks")
    (tmp_path / "views" / ".#visits.sql").symlink_to("me@here.1234:1700000000")
    (tmp_path / "views" / "._visits.sql").write_bytes(b"\x00\x05\x16\x07\xff")

    loaded = load_here(tmp_path, HEAD + "queries:\n  visits: {to: {console: }}\n")

    assert loaded.findings == []
    assert loaded.pipeline is not None
    assert set(loaded.pipeline.views) == {"visits"}


def test_a_function_is_a_view_where_a_declared_function_has_it_as_a_parameter(tmp_path: Path) -> None:
    write_file(tmp_path / "transforms.py", "def sessions(clicks): ...\ndef report(sessions): ...\n")
    views = "views: {report: {python: 'transforms:report'}}\n"

    loaded = load_here(tmp_path, HEAD + views + "queries:\n  report: {to: {console: }}\n")

    assert loaded.findings == []
    assert loaded.pipeline is not None
    assert set(loaded.pipeline.views) == {"report", "sessions"}


@pytest.mark.parametrize(
    ("written", "marked"),
    [
        ("  v: SELECT x FROM clicks\n", (5, 20, 26)),
        ("  v: 'SELECT ''x'' FROM clicks'\n", (5, 25, 31)),
        ('  v: "SELECT \\"x\\" FROM clicks"\n', (5, 25, 31)),
        ("  v: |\n    SELECT x\n    FROM clicks\n", (7, 10, 16)),
        ("  v: |2-\n      SELECT x\n\n      FROM clicks\n", (8, 12, 18)),
        ("  v: >\n    SELECT x\n    FROM clicks\n", (7, 10, 16)),
        ("  v: SELECT x\n     FROM clicks\n", (6, 11, 17)),
        ("  v: {sql: SELECT é FROM clicks}\n", (5, 26, 32)),
        ("  v:\n    sql: |  # a note\n      SELECT x\n      FROM clicks\n", (8, 12, 18)),
    ],
)
def test_a_place_in_sql_is_a_place_in_the_file(
    tmp_path: Path, written: str, marked: tuple[int, int, int]
) -> None:
    loaded = load_here(tmp_path, HEAD + "views:\n" + written + "queries:\n  v: {to: {console: }}\n")
    assert loaded.pipeline is not None
    sql = loaded.pipeline.views["v"].sql or ""
    start = sql.index("clicks")

    span = loaded.places.sql("v", start, start + len("clicks"))

    assert (span.line, span.column, span.end_column) == marked
    assert span.end_line == span.line


def test_places_know_the_words_of_the_model_and_of_the_file(tmp_path: Path) -> None:
    loaded = load_here(tmp_path, HEAD + "queries:\n  clicks: {to: {delta: {path: x}}}\n")
    places = loaded.places

    assert places.value("queries", "clicks", "to", 0, "sink", "path") == places.value(
        "queries", "clicks", "to", "delta", "path"
    )
    assert places.value("queries", "clicks", "to", "delta", "path").column == 31
    assert places.key("sources", "clicks", "source", "rows_per_second") == places.key(
        "sources", "clicks", "rate"
    )
    assert places.key("nothing", "at", "all").line == 1


def test_a_value_is_replaced_from_the_command_line(tmp_path: Path) -> None:
    text = HEAD + "queries:\n  clicks: {to: [{parquet: lake}, {console: }]}\n"

    loaded = load_here(
        tmp_path,
        text,
        "queries.clicks.trigger=once",
        "sources.clicks.rate.rows_per_second=7",
        "queries.clicks.to.0.parquet.path=elsewhere",
        "queries.clicks.to.1.console.num_rows=3",
    )

    assert loaded.findings == []
    assert loaded.pipeline is not None
    query = loaded.pipeline.queries["clicks"]
    assert str(query.trigger) == "once"
    assert query.to[0].sink.target().endswith("elsewhere")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("queries", "MS007 --set queries does not have the form KEY=VALUE"),
        ("queries..x=1", "MS007 --set queries..x=1 does not have the form KEY=VALUE"),
        ("queries.clik.trigger=once", "MS007 --set queries.clik.trigger: there is no 'clik' in queries"),
        ("name.x=1", "MS007 --set name.x: 'name' is a single value and has no keys"),
        (
            "queries.clicks.to.4.x=1",
            "MS007 --set queries.clicks.to.4.x: 'queries.clicks.to' is a list with items 0 to 0; '4' is not one of "
            "them",
        ),
        (
            "queries.clicks.output_mode=upsert",
            "MS003 'output_mode' of query 'clicks' takes append, update or complete, not 'upsert'",
        ),
    ],
)
def test_an_override_that_cannot_be_applied_is_a_finding(tmp_path: Path, given: str, said: str) -> None:
    loaded = load_here(tmp_path, HEAD + "queries:\n  clicks: {to: [{console: }]}\n", given)

    assert messages(loaded) == [said]


def test_an_override_changes_one_of_two_sources_that_share_their_settings() -> None:
    shop = ms.declare("shop")
    topic = ms.kafka(bootstrap_servers="b:1", subscribe="orders")
    for name in ("first", "second"):
        shop.source(name, topic, schema={"id": "int"})
        shop.query(name, to=ms.console())

    loaded = shop.load(None, {}, ["sources.first.kafka.subscribe=returns"])

    assert loaded.pipeline is not None
    sources = loaded.pipeline.sources
    topics = [
        source.model_dump()["subscribe"] for source in (sources["first"].source, sources["second"].source)
    ]
    assert topics == [("returns",), ("orders",)]


def test_an_override_makes_a_missing_variable_unneeded(tmp_path: Path) -> None:
    text = HEAD + "queries:\n  clicks: {to: {parquet: '${LAKE}'}}\n"

    assert messages(load_here(tmp_path, text)) == ["MS006 the variable LAKE is not set"]
    assert load_here(tmp_path, text, "queries.clicks.to.parquet=lake").findings == []


def test_numbers_and_flags_may_come_from_variables(tmp_path: Path) -> None:
    text = HEAD.replace("{}", "{rows_per_second: '${N}'}") + (
        "  table: {parquet: x, static: '${FLAG}'}\nqueries:\n  clicks: {to: {console: }}\n"
    )

    loaded = load_here(tmp_path, text, N="12", FLAG="true")

    assert loaded.findings == []
    assert loaded.pipeline is not None
    assert loaded.pipeline.sources["table"].static is True


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("1", "'${D}' is not a length of time; write it as '10 seconds' or '1 hour 30 minutes'"),
        ("10", "'${D}' is not a length of time; write it as '10 seconds' or '1 hour 30 minutes'"),
        ("10 se", "'${D}' is not a length of time; write it as '10 seconds' or '1 hour 30 minutes'"),
        ("10 parsecs", "'${D}' is not a length of time; write it as '10 seconds' or '1 hour 30 minutes'"),
    ],
)
def test_a_message_quotes_a_variable_and_leaves_other_words(tmp_path: Path, value: str, message: str) -> None:
    text = HEAD + "queries:\n  clicks: {trigger: {processing_time: '${D}'}, to: {console: }}\n"

    assert messages(load_here(tmp_path, text, D=value)) == [f"MS003 {message}"]


def test_findings_stand_in_file_order(tmp_path: Path) -> None:
    text = (
        "nam: x\nsources:\n  a: {rat: {}}\nqueries:\n  a: {to: {console: }, trigger: '${T}', outputmode: x}\n"
    )

    loaded = load_here(tmp_path, text)

    places = [(finding.span.line, finding.span.column) for finding in loaded.findings if finding.span]
    assert places == sorted(places)
    assert [finding.code for finding in loaded.findings] == ["MS002", "MS002", "MS006", "MS002"]


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"", b"name: \x00", b"a" * 2_000_000])
def test_a_file_that_is_no_text_is_a_finding(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "pipeline.yml"
    path.write_bytes(content)

    assert [finding.code for finding in load_spec(path, {}).findings] == ["MS001"]


def test_a_file_that_is_not_there_is_a_finding(tmp_path: Path) -> None:
    assert [finding.code for finding in load_spec(tmp_path / "none.yml", {}).findings] == ["MS001"]


def test_a_byte_order_mark_and_windows_line_ends_change_nothing(tmp_path: Path) -> None:
    text = HEAD + "queries:\n  clicks: {to: {consol: }}\n"
    (tmp_path / "pipeline.yml").write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())

    (finding,) = load_spec(tmp_path / "pipeline.yml", {}).findings

    assert finding.span is not None
    assert (finding.span.line, finding.span.column) == (5, 17)


@pytest.mark.parametrize("word", ["on", "off", "yes", "no", "12:30:00", "2026-01-01", "0x", "1_000"])
def test_words_that_yaml_once_took_for_values_stay_text(word: str) -> None:
    text = HEAD + f"params: {{x: {word}}}\nqueries:\n  clicks: {{to: {{console: }}}}\n"

    loaded = load_text("pipeline.yml", text, Path(), {})

    assert loaded.pipeline is not None
    assert loaded.pipeline.params["x"] == word


def test_ten_with_a_leading_nought_is_ten() -> None:
    text = HEAD + "params: {x: 010}\nqueries:\n  clicks: {to: {console: }}\n"

    loaded = load_text("pipeline.yml", text, Path(), {})

    assert loaded.pipeline is not None
    assert loaded.pipeline.params["x"] == 10
