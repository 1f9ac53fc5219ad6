"""A test file becomes tests, or findings with the place of each fault."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from millstream.testing.files.loader import Suite, load
from millstream.testing.model import Advance, Case, Crash, Feed, Record, Restart

SHOP = """\
name: shop
params: {threshold: 1}
sources:
  clicks:
    kafka: {bootstrap_servers: "localhost:9092", subscribe: clicks}
    schema: {id: string, n: int, at: timestamp, tags: "array<string>", who: "struct<name: string, age: int>"}
    keep: [key]
    watermark: {event_time: at, delay_threshold: 5 minutes}
  ticks:
    rate: {}
  prices:
    parquet: data/prices
    schema: {id: string, price: "decimal(10,2)", day: date}
    static: true
views:
  counts: SELECT c.id, count(*) AS n FROM clicks c JOIN prices p ON c.id = p.id GROUP BY c.id
queries:
  counts: {output_mode: update, to: [{delta: {path: lake/counts, merge_on: [id]}}, {console: {}}]}
  ticks: {to: {console: {}}}
"""


def write_files(folder: Path, text: str, spec: str = SHOP) -> Path:
    (folder / "pipeline.yml").write_text(spec)
    file = folder / "tests" / "shop.yml"
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    return file


def read(folder: Path, text: str, spec: str = SHOP, *, filling: bool = False) -> Suite:
    return load(write_files(folder, text, spec), lambda _: {}, filling=filling)


def load_case(folder: Path, text: str, spec: str = SHOP) -> Case:
    suite = read(folder, text, spec)
    assert suite.findings == ()
    (case,) = suite.cases
    return case


def faults(folder: Path, steps: str, more: str = "") -> list[str]:
    """What is wrong with a test of these steps, as `line:column code message`."""
    text = f"tests:\n  t:\n    query: counts\n{more}    steps:\n{steps}"
    return list_messages(read(folder, text))


def list_messages(suite: Suite) -> list[str]:
    return [
        f"{finding.span.line}:{finding.span.column} {finding.code} {finding.message}"
        for finding in suite.findings
        if finding.span
    ]


def test_a_whole_test_is_read(tmp_path: Path) -> None:
    case = load_case(
        tmp_path,
        """\
tests:
  a late click is dropped:
    query: counts
    now: "2026-01-01 12:00:00"
    static: {prices: [{id: a, price: 2.5, day: "2026-01-01"}]}
    sinks: real
    tolerance: 0.5
    steps:
      - feed: {clicks: [{id: a, n: 1, at: "2026-01-01 12:00:00", key: k}]}
        expect: [{id: a, n: 1}]
        expect_watermark: "2026-01-01 11:55:00"
      - restart
      - crash: after_sink
      - advance: 10 minutes
        expect_dropped: 0
        expect_state: {stateStoreSave: 3}
        expect_dead_letters: 2
""",
    )

    assert (case.name, case.query, case.has_real_sinks, case.tolerance) == (
        "a late click is dropped",
        "counts",
        True,
        0.5,
    )
    assert case.now == datetime(2026, 1, 1, 12, tzinfo=UTC)
    assert case.static == {"prices": ({"id": "a", "price": 2.5, "day": "2026-01-01"},)}
    assert [step.actions for step in case.steps] == [
        (Feed({"clicks": ({"id": "a", "n": 1, "at": "2026-01-01 12:00:00", "key": "k"},)}),),
        (Restart(),),
        (Crash("after_sink"),),
        (Advance(timedelta(minutes=10)),),
    ]
    assert case.steps[0].expected.rows == {"": ({"id": "a", "n": 1},)}
    assert case.steps[0].expected.watermark == datetime(2026, 1, 1, 11, 55, tzinfo=UTC)
    last = case.steps[3].expected
    assert (last.dropped, last.state, last.letters) == (0, {"stateStoreSave": 3}, 2)
    assert (case.where.line, case.steps[0].where.line, case.steps[1].where.line) == (2, 9, 12)


def test_what_happens_in_one_step_happens_in_one_order(tmp_path: Path) -> None:
    case = load_case(
        tmp_path,
        "tests: {t: {query: counts, steps: [{crash: delta, feed: {clicks: []}, restart: , advance: 1 s}]}}",
    )

    kinds = [type(action).__name__ for action in case.steps[0].actions]
    assert kinds == ["Advance", "Restart", "Feed", "Crash"]


def test_a_message_is_read_as_it_came(tmp_path: Path) -> None:
    case = load_case(
        tmp_path,
        """\
tests:
  t:
    query: counts
    steps:
      - feed:
          clicks:
            - record: {value: "{broken", key: k, topic: clicks, partition: 1, offset: 7, headers: {a: b, c: null}}
            - record: {value_base64: /w==, timestamp: "2026-01-01 12:00:00", headers: [{a: x}, {a: y}]}
            - record: {value: null}
""",
    )

    (feed,) = case.steps[0].actions
    assert isinstance(feed, Feed)
    assert feed.rows["clicks"] == (
        Record(b"{broken", b"k", "clicks", 1, 7, None, (("a", b"b"), ("c", None))),
        Record(b"\xff", timestamp=datetime(2026, 1, 1, 12, tzinfo=UTC), headers=(("a", b"x"), ("a", b"y"))),
        Record(None),
    )


def test_a_table_makes_a_test_of_each_row_and_keeps_types(tmp_path: Path) -> None:
    text = """\
tests:
  t:
    query: counts
    table: [{late: "2026-01-01 12:05:00", n: 1}, {late: null, n: 2}]
    steps:
      - feed: {clicks: [{id: "x${n}$$", at: "${late}", n: "${n}"}]}
"""
    suite = read(tmp_path, text)

    assert suite.findings == ()
    assert [case.name for case in suite.cases] == ["t [late=2026-01-01 12:05:00, n=1]", "t [late=null, n=2]"]
    feeds = [case.steps[0].actions[0] for case in suite.cases]
    assert [feed.rows["clicks"][0] for feed in feeds if isinstance(feed, Feed)] == [
        {"id": "x1$", "at": "2026-01-01 12:05:00", "n": 1},
        {"id": "x2$", "at": None, "n": 2},
    ]


def test_a_name_may_hold_the_values_of_its_row(tmp_path: Path) -> None:
    suite = read(
        tmp_path,
        'tests: {"n is ${n}": {query: ticks, table: [{n: 1}], steps: [{expect_dropped: "${n}"}]}}',
    )

    assert [case.name for case in suite.cases] == ["n is 1"]


def test_params_and_set_change_the_pipeline_of_one_test(tmp_path: Path) -> None:
    text = """\
tests:
  changed:
    query: counts
    params: {threshold: 3}
    set: {sources.clicks.watermark.delay_threshold: 1 minute}
    steps: [{expect: []}]
  as it is: {query: counts, steps: [{expect: []}]}
"""
    changed, plain = read(tmp_path, text).cases

    assert changed.pipeline.params == {"threshold": 3}
    assert [str(case.pipeline.sources["clicks"].watermark.delay_threshold) for case in (changed, plain)] == [  # type: ignore[union-attr]
        "1 minute",
        "5 minutes",
    ]


def test_a_later_version_is_a_file_or_values_laid_over(tmp_path: Path) -> None:
    text = """\
tests:
  t:
    query: counts
    steps:
      - restart_with: later.yml
      - restart_with: {params.threshold: 9}
        feed: {clicks: []}
"""
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "later.yml").write_text(SHOP.replace("name: shop", "name: later"))
    case = load_case(tmp_path, text)

    first, second = (step.actions[0] for step in case.steps)
    assert isinstance(first, Restart)
    assert isinstance(second, Restart)
    assert first.pipeline is not None
    assert (first.pipeline.name, first.description) == ("later", "with later.yml")
    assert second.pipeline is not None
    assert (second.pipeline.params, second.description) == ({"threshold": 9}, "with params.threshold: 9")


def test_a_pipeline_may_stand_in_the_file(tmp_path: Path) -> None:
    text = (
        "pipeline:\n  name: inline\n  sources: {ticks: {rate: {}}}\n  queries: {ticks: {to: {console: {}}}}\n"
    )
    case = load_case(tmp_path, text + "tests: {t: {steps: [{feed: {ticks: [{value: 1}]}}]}}")

    assert (case.pipeline.name, case.query) == ("inline", "ticks")


def test_a_fault_in_an_inline_pipeline_stands_at_its_own_place(tmp_path: Path) -> None:
    text = """\
pipeline:
  name: inline
  sources: {ticks: {rate: {rows_per_sec: 1}}}
  queries: {ticks: {to: {console: }}}
tests: {t: {steps: [restart]}}
"""

    assert list_messages(read(tmp_path, text)) == [
        "3:28 MS002 'rate' of source 'ticks' has no key 'rows_per_sec'"
    ]


def test_a_fault_in_the_pipeline_is_told_once_and_in_its_file(tmp_path: Path) -> None:
    spec = SHOP.replace("rate: {}", "rate: {rows_per_sec: 1}")
    text = """\
tests:
  a: {query: ticks, steps: [restart]}
  b: {query: ticks, params: {threshold: 2}, steps: [restart]}
"""
    suite = read(tmp_path, text, spec)

    assert [Path(finding.span.file).name for finding in suite.findings if finding.span] == ["pipeline.yml"]
    assert suite.cases == ()


def test_the_place_of_a_wrong_override_is_the_test(tmp_path: Path) -> None:
    text = """\
tests:
  t:
    query: counts
    set:
      sources.clickz.watermark.delay_threshold: 1 minute
    steps: [restart]
  u:
    query: counts
    set: {sources.clicks.watermark.delay_threshold: soon}
    steps: [restart]
  v:
    query: counts
    params: {treshold: 1}
    steps: [restart]
"""
    suite = read(tmp_path, text)

    assert list_messages(suite) == [
        "5:7 MS007 sources.clickz.watermark.delay_threshold: there is no 'clickz' in sources",
        "9:53 MS003 'soon' is not a length of time; write it as '10 seconds' or '1 hour 30 minutes'",
        "13:14 MS018 the pipeline has no parameter 'treshold'",
    ]
    assert suite.findings[2].fix == "write 'threshold'"


FAULTY = [
    ("- fed: {clicks: []}", "5:9 MS002 a step has no key 'fed'"),
    ("- {}", "5:9 MS019 the step does nothing and expects nothing"),
    ("- crash", "5:9 MS003 a step that is one word takes 'restart', not 'crash'"),
    ("- crash: after_sink", "5:16 MS019 the step crashes the query before any batch that could be repeated"),
    ("- {feed: {clicks: []}, crash: after_snk}", "5:37 MS018 there is no crash point 'after_snk'"),
    ("- feed: {clickz: []}", "5:16 MS018 there is no source 'clickz'"),
    ("- feed: {prices: []}", "5:16 MS018 source 'prices' is static and takes no feed"),
    ("- feed: {ticks: []}", "5:16 MS018 query 'counts' does not read source 'ticks'"),
    ("- feed: {clicks: [{idd: a}]}", "5:26 MS012 source 'clicks' has no column 'idd'"),
    ("- feed: {clicks: [{id: 7}]}", "5:30 MS003 'id' of source 'clicks' takes text, not 7"),
    (
        "- feed: {clicks: [{n: seven}]}",
        "5:29 MS003 'n' of source 'clicks' takes a whole number of 32 bits, not 'seven'",
    ),
    (
        "- feed: {clicks: [{at: noon}]}",
        "5:30 MS003 'at' of source 'clicks' takes a time like 2026-01-31 12:00:00, not 'noon'",
    ),
    ("- feed: {clicks: [{tags: [a, 1]}]}", "5:36 MS003 'tags.1' of source 'clicks' takes text, not 1"),
    ("- feed: {clicks: [{who: {nam: a}}]}", "5:32 MS012 source 'clicks' has no field 'who.nam'"),
    ("- feed: {clicks: [a]}", "5:25 MS003 a row of source 'clicks' takes columns with values, not 'a'"),
    (
        "- feed: {clicks: {id: a}}",
        "5:16 MS003 the feed of source 'clicks' takes a list, not a mapping",
    ),
    ("- feed: {clicks: [{record: {key: k}}]}", "5:26 MS004 a record has no 'value'"),
    ("- feed: {clicks: [{record: {value: a, ofset: 1}}]}", "5:45 MS002 a record has no key 'ofset'"),
    (
        "- feed: {clicks: [{record: {value_base64: '?'}}]}",
        "5:49 MS003 'value_base64' of a record takes text in base64, not '?'",
    ),
    ("- expect:", "5:9 MS003 'expect' is empty"),
    ("- expect: {count: []}", "5:18 MS018 query 'counts' has no view, source or sink 'count'"),
    ("- expect: {clicks: [{idd: a}]}", "5:28 MS012 source 'clicks' has no column 'idd'"),
    (
        "- expect_watermark: soon",
        "5:27 MS003 'expect_watermark' takes a time like 2026-01-31 12:00:00, not 'soon'",
    ),
    ("- expect_dropped: -1", "5:25 MS003 'expect_dropped' takes a whole number of at least 0, not -1"),
    ("- expect_dead_letters: [{reson: x}]", "5:32 MS018 a dead letter has no 'reson' to compare"),
    ("- advance: later", "5:18 MS003 'advance' takes a length of time like 10 minutes, not 'later'"),
    ("- restart_with: gone.yml", "5:23 MS003 there is no pipeline file 'gone.yml'"),
    ("- feed: {clicks: [{id: '${x}'}]}", "5:30 MS020 no table defines 'x'"),
]


@pytest.mark.parametrize(("step", "wanted"), FAULTY, ids=[step for step, _ in FAULTY])
def test_a_fault_in_a_step_is_told_at_its_place(step: str, wanted: str, tmp_path: Path) -> None:
    got = faults(tmp_path, f"      {step}\n")

    assert got == [wanted]


def test_all_faults_are_told_at_once(tmp_path: Path) -> None:
    text = """\
tests:
  a:
    qery: counts
    query: count
    steps: [{fed: {}}]
  b:
    table: [{x: 1}]
    steps: [{feed: {clicks: [{id: "${y}"}]}}]
  c: {query: counts, sinks: reel, tolerance: -1}
  d:
"""

    assert [line.partition(" ")[2] for line in list_messages(read(tmp_path, text))] == [
        "MS002 test 'a' has no key 'qery'",
        "MS018 there is no query 'count'",
        "MS002 a step has no key 'fed'",
        "MS004 the test does not name its query",
        "MS020 the table has no column 'y'",
        "MS004 test 'c' has no 'steps'",
        "MS003 test 'd' is empty",
    ]


def test_an_empty_expectation_is_one_of_no_rows_where_it_is_to_be_filled(tmp_path: Path) -> None:
    suite = read(tmp_path, "tests: {t: {query: counts, steps: [{expect: }]}}", filling=True)

    assert suite.cases[0].steps[0].expected.rows == {"": ()}


def test_two_tests_of_one_name_are_a_finding(tmp_path: Path) -> None:
    text = "tests: {t: {query: ticks, table: [{n: 1}, {n: 1}], steps: [{expect_dropped: '${n}'}]}}"

    assert list_messages(read(tmp_path, text)) == ["1:9 MS005 two tests are called 't [n=1]'"]


def test_without_a_pipeline_that_is_said_once(tmp_path: Path) -> None:
    file = write_files(tmp_path, "tests: {t: {steps: [restart]}, u: {steps: [restart]}}")
    (tmp_path / "pipeline.yml").unlink()

    assert list_messages(load(file, lambda _: {})) == [
        "1:1 MS004 the file names no pipeline, and no parent folder has a pipeline.yml"
    ]
