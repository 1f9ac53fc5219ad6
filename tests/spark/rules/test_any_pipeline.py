"""Whatever stands in a spec, the whole check gives findings that every form can print, and never an exception."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import rule_pages
import sweep
from millstream.analysis.rule_pages import find_pages
from millstream.checking.check import check
from millstream.diagnostics.render import Form, render
from millstream.pipeline.spec_file import load_text

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

SPEC = """name: shop
params: {least: 3}
sources:
  orders:
    kafka: {bootstrap_servers: "localhost:1", subscribe: orders}
    schema: {user: string, amount: double, ts: timestamp, tags: "array<string>", box: "struct<a:int>"}
    watermark: {event_time: ts, delay_threshold: 1 minute}
  names: {parquet: names, schema: {user: string, day: date}, static: true}
views:
  seen: |-
{SQL}
queries:
  seen: {output_mode: {MODE}, to: {console: {}}}
"""
WORDS = """SELECT FROM WHERE GROUP BY ORDER LIMIT JOIN LEFT ANTI ON UNION ALL DISTINCT HAVING WITH AS OVER PARTITION
orders names seen user amount ts tags box.a day * ( ) , = < > + - / % :least ? 'text' 1 0 NULL TRUE INTERVAL 1 MINUTE
window(ts,'1m') session_window(ts,'5m') count(*) sum(amount) first(user) collect_list(user) rand() uuid()
now() explode(tags) current_timestamp() CAST(amount AS INT) try_cast(user AS date) tags[0] box from_json(user,'a INT')
row_number() monotonically_increasing_id() input_file_name() nope nope() `a b` -- /* */ ; \\ " ' ` $ é 😀
LATERAL VIEW PIVOT TABLESAMPLE (10 PERCENT) approx_count_distinct(user) max_by(user,ts) IN BETWEEN CASE WHEN THEN END
VALUES (1) EXISTS"""
HEADS = [
    "SELECT",
    "SELECT * FROM orders",
    "SELECT user, count(*) FROM orders",
    "WITH a AS (SELECT * FROM orders)",
    "",
]
SQL = st.builds(
    lambda head, words: " ".join([head, *words]),
    st.sampled_from(HEADS),
    st.lists(st.sampled_from(WORDS.split()), max_size=12),
)
GOOD = [
    block.spec
    for page in find_pages().values()
    for block in rule_pages.read(page)
    if block.file == rule_pages.SPEC
]
QUICK = settings(
    deadline=None,
    max_examples=sweep.size(20, 60, "MILLSTREAM_EXAMPLES"),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def judged(text: str, folder: Path, spark: SparkSession) -> None:
    loaded = load_text("pipeline.yml", text, folder, {})

    checked = check(loaded, spark)

    assert loaded.pipeline is not None or checked.findings
    promised = [promise.plain() for promise in checked.promises]
    for form in get_args(Form):
        render(checked.findings, checked.texts, form, guarantees=promised)


@given(SQL, st.sampled_from(["append", "update", "complete"]))
@QUICK
def test_any_sql_gives_findings(nowhere: Path, spark: SparkSession, sql: str, mode: str) -> None:
    text = SPEC.replace("{SQL}", "\n".join(f"    {line}" for line in sql.split("\n"))).replace("{MODE}", mode)

    judged(text, nowhere, spark)


@given(st.text(max_size=60))
@QUICK
def test_any_text_as_sql_gives_findings(nowhere: Path, spark: SparkSession, sql: str) -> None:
    import json

    judged(SPEC.replace("|-\n{SQL}", json.dumps(sql)).replace("{MODE}", "append"), nowhere, spark)


@given(
    st.sampled_from(GOOD),
    st.lists(st.tuples(st.floats(0, 1), st.floats(0, 0.1), st.text(max_size=4)), min_size=1, max_size=3),
)
@QUICK
def test_a_spec_with_pieces_cut_out_and_put_in_gives_findings(
    nowhere: Path, spark: SparkSession, spec: str, cuts: list[tuple[float, float, str]]
) -> None:
    for place, length, received in cuts:
        start = int(place * len(spec))
        spec = spec[:start] + received + spec[start + int(length * len(spec)) :]

    judged(spec, nowhere, spark)


@given(st.sampled_from(GOOD), st.integers(0, 40), st.integers(0, 40))
@QUICK
def test_a_spec_with_lines_swapped_gives_findings(
    nowhere: Path, spark: SparkSession, spec: str, one: int, other: int
) -> None:
    lines = spec.splitlines(keepends=True)
    one, other = one % len(lines), other % len(lines)
    lines[one], lines[other] = lines[other], lines[one]

    judged("".join(lines), nowhere, spark)
