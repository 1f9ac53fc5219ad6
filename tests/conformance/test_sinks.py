"""What every sink kind must do in every output mode it takes; its declared guarantee says how strictly."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from conformance.targets import (
    IN_SANDBOX,
    MAKERS,
    UNREADABLE,
    Case,
    Place,
    Row,
    Target,
    cases,
    family,
    kinds,
    ordered,
    writers,
)
from millstream.connectors import registry
from millstream.connectors.api.batch_ledger import BatchMetadata
from millstream.connectors.api.writer import SinkIdentity, Writer
from millstream.diagnostics.failure import MillstreamError
from millstream.spec.guarantee import Guarantee

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

# Each test in each mode of each writer; which of the kinds that share one, differs from test to test.
# What no mode changes is tried once with each writer, and each mode once.
ONCE = pytest.mark.sweep(by=writers)
pytestmark = [
    pytest.mark.parametrize("case", cases(), ids=str),
    pytest.mark.usefixtures("interpreted"),
    pytest.mark.sweep(by=family),
]

FIRST: list[Row] = [("a", "1"), ("b", "2")]
SECOND: list[Row] = [("b", "3"), ("c", "4")]
THIRD: list[Row] = [("d", "5")]
ODD: list[Row] = [
    ("tab", "a\tb"),
    ("newline", "a\nb"),
    ("return", "a\rb"),
    ("both", "a\r\nb"),
    ("backslash", "a\\b"),
    ("escape", "\\n\\t\\"),
    ("null of copy", "\\N"),
    ("end of copy", "\\."),
    ("quotes", 'it\'s "quoted"'),
    ("comma", "a,b;c|d"),
    ("emoji", "😀 é ß 漢字"),
    ("spaces", "  a  "),
    ("braces", "{a} [b] ${c}"),
]


class Tried:
    """A target with its writers, and batches made of plain rows."""

    def __init__(self, case: Case, target: Target, spark: SparkSession) -> None:
        self.case, self.target, self.spark = case, target, spark
        self._open: list[Writer] = []
        # The database is shared by all tests: an address of memory comes again, and with it another test's ledger.
        self._own = uuid.uuid4()

    @property
    def repeats(self) -> bool:
        """May a repeated batch be seen twice, by what the kind declares?"""
        return self.target.sink.guarantee(self.case.mode)[0] is Guarantee.AT_LEAST_ONCE

    def frame(self, rows: list[Row]) -> DataFrame:
        return self.target.shape(self.spark.createDataFrame(rows, "k STRING, v STRING"))

    def writer(self, query: str = "one") -> Writer:
        """A writer as a start of that query makes it; each query has a checkpoint of its own."""
        result = self.closed(query)
        result.open(self.spark, self.frame([]).schema)
        return result

    def closed(self, query: str = "one", checkpoint: str = "") -> Writer:
        """The same before it is opened; with another checkpoint where one is named."""
        sink, query_id = self.target.sink, f"id-of-{query}{checkpoint}-{self._own}"
        writer = sink.writer(SinkIdentity("shop", query, query_id, f"{sink.kind}:target", self.case.mode))
        writer.note = lambda batch: BatchMetadata((f'{{"end": {batch}}}', None), 1000 + batch, f"2:{batch}")
        self._open.append(writer)
        return writer

    def rows(self) -> list[Row]:
        return self.target.read()

    def assert_holds(self, *batches: list[Row], repeated: bool = False) -> None:
        expected, got = self.case.holding(*batches), self.rows()
        if repeated and self.repeats:
            expected, got = ordered(set(expected)), ordered(set(got))
        assert got == expected

    def close(self) -> None:
        for writer in self._open:
            writer.close()


@pytest.fixture
def tried_sink(case: Case, tmp_path: Path, spark: SparkSession, request: pytest.FixtureRequest):
    result = Tried(case, case.target(Place(tmp_path, spark, request)), spark)
    yield result
    result.close()


@ONCE
def test_its_settings_have_no_problem_and_the_world_is_ready(tried_sink: Tried, case: Case) -> None:
    assert tried_sink.target.sink.problems(case.mode) == []
    tried_sink.target.sink.probe()


@ONCE
def test_it_opens_and_closes_without_writing(tried_sink: Tried) -> None:
    tried_sink.writer().close()


@pytest.mark.sweep(by=kinds)
def test_rows_are_written(tried_sink: Tried) -> None:
    tried_sink.writer().write(tried_sink.frame(FIRST), 0)

    tried_sink.assert_holds(FIRST)


@ONCE
def test_an_empty_batch_writes_nothing_and_leaves_the_target_readable(tried_sink: Tried) -> None:
    writer = tried_sink.writer()
    writer.write(tried_sink.frame([]), 0)

    assert tried_sink.rows() == []

    writer.write(tried_sink.frame(FIRST), 1)

    tried_sink.assert_holds(FIRST)


def test_the_next_batch_does_what_its_mode_says(tried_sink: Tried) -> None:
    writer = tried_sink.writer()
    writer.write(tried_sink.frame(FIRST), 0)
    writer.write(tried_sink.frame(SECOND), 1)

    tried_sink.assert_holds(FIRST, SECOND)


def test_a_replayed_batch_changes_nothing(tried_sink: Tried) -> None:
    writer = tried_sink.writer()
    writer.write(tried_sink.frame(FIRST), 0)
    writer.write(tried_sink.frame(FIRST), 0)

    tried_sink.assert_holds(FIRST, repeated=True)


def test_a_batch_replayed_by_the_next_start_changes_nothing(tried_sink: Tried) -> None:
    before = tried_sink.writer()
    before.write(tried_sink.frame(FIRST), 0)
    before.write(tried_sink.frame(SECOND), 1)
    before.close()

    tried_sink.writer().write(tried_sink.frame(SECOND), 1)

    tried_sink.assert_holds(FIRST, SECOND, repeated=True)


@ONCE
def test_an_older_batch_is_passed_over(tried_sink: Tried) -> None:
    writer = tried_sink.writer()
    writer.write(tried_sink.frame(FIRST), 3)
    writer.write(tried_sink.frame(THIRD), 4)
    writer.write(tried_sink.frame(FIRST), 3)

    tried_sink.assert_holds(FIRST, THIRD, repeated=True)


@ONCE
def test_batch_ids_may_have_gaps(tried_sink: Tried) -> None:
    writer = tried_sink.writer()
    for batch_id, rows in ((2, FIRST), (7, SECOND), (40, THIRD)):
        writer.write(tried_sink.frame(rows), batch_id)

    tried_sink.assert_holds(FIRST, SECOND, THIRD)


@ONCE
def test_two_queries_do_not_mix(tried_sink: Tried) -> None:
    tried_sink.writer("one").write(tried_sink.frame(FIRST), 0)
    tried_sink.writer("two").write(tried_sink.frame(THIRD), 0)

    tried_sink.assert_holds(FIRST, THIRD)


@ONCE
def test_a_null_value_stays_null(tried_sink: Tried) -> None:
    tried_sink.writer().write(tried_sink.frame([("a", None)]), 0)

    tried_sink.assert_holds([("a", None)])


@ONCE
def test_a_null_key_is_kept_once_or_refused_with_a_sentence(tried_sink: Tried, case: Case) -> None:
    writer = tried_sink.writer()
    refusal: MillstreamError | None = None
    try:
        writer.write(tried_sink.frame([(None, "1")]), 0)
        writer.write(tried_sink.frame([(None, "2")]), 1)
    except MillstreamError as error:
        refusal = error

    if refusal is None:
        tried_sink.assert_holds([(None, "1")], [(None, "2")])
        return
    assert case.keyed
    assert "null" in refusal.what or "requires a value" in refusal.what
    assert refusal.fix
    assert tried_sink.rows() == []


@pytest.mark.sweep(by=kinds)
def test_odd_characters_come_back_as_they_went(tried_sink: Tried) -> None:
    tried_sink.writer().write(tried_sink.frame(ODD), 0)

    tried_sink.assert_holds(ODD)


@ONCE
def test_it_knows_which_batches_it_holds(tried_sink: Tried) -> None:
    writer = tried_sink.writer()
    assert not writer.has_batch(0)

    writer.write(tried_sink.frame(FIRST), 5)

    assert not writer.has_batch(6)
    assert writer.has_batch(5) or tried_sink.repeats


@ONCE
def test_the_next_start_knows_which_batches_it_holds(tried_sink: Tried) -> None:
    tried_sink.writer().write(tried_sink.frame(FIRST), 5)

    writer = tried_sink.writer()

    assert not writer.has_batch(6)
    assert writer.has_batch(5) or tried_sink.repeats


@ONCE
def test_another_query_holds_none_of_them(tried_sink: Tried) -> None:
    tried_sink.writer("one").write(tried_sink.frame(FIRST), 5)

    assert not tried_sink.writer("two").has_batch(5)


@ONCE
def test_two_rows_of_one_key_in_one_batch_are_refused_by_name(tried_sink: Tried, case: Case) -> None:
    if not case.keyed:
        pytest.skip("rows have no key here")
    writer = tried_sink.writer()

    with pytest.raises(MillstreamError, match=r"same key.*twice-used") as error:
        writer.write(tried_sink.frame([("twice-used", "1"), ("twice-used", "2")]), 0)

    assert error.value.fix
    assert not writer.has_batch(0)


@ONCE
def test_after_a_refused_batch_the_writer_goes_on(tried_sink: Tried, case: Case) -> None:
    writer = tried_sink.writer()
    if case.keyed:
        with pytest.raises(MillstreamError):
            writer.write(tried_sink.frame([("b", "1"), ("b", "2")]), 0)

    writer.write(tried_sink.frame(FIRST), 0)

    tried_sink.assert_holds(FIRST)


@ONCE
def test_show_gives_the_rows_without_spark(tried_sink: Tried) -> None:
    tried_sink.writer().write(tried_sink.frame(FIRST), 0)

    text = tried_sink.target.sink.rows(10)

    if text is None:
        pytest.skip("the kind cannot be read without Spark")
    names, rows = text
    if {"k", "v"} <= set(names):
        at = names.index("k"), names.index("v")
        assert ordered((row[at[0]], row[at[1]]) for row in rows) == ordered(FIRST)
    else:
        assert len(rows) == len(FIRST)


@ONCE
def test_what_it_says_of_itself_holds_no_secret(tried_sink: Tried) -> None:
    sink = tried_sink.target.sink
    password = (
        getattr(getattr(sink, "url", None), "reveal", lambda: ":no password@")().split("@")[0].split(":")[-1]
    )

    text = f"{sink.identity()} {sink.describe()} {sink.target()} {sink!r} {sink.model_dump_json()}"

    assert password not in text


@ONCE
def test_a_fresh_checkpoint_is_told_what_others_of_its_query_wrote_and_nothing_of_other_queries(
    tried_sink: Tried, case: Case
) -> None:
    before = tried_sink.writer()
    before.write(tried_sink.frame(FIRST), 0)
    before.write(tried_sink.frame(SECOND), 1)
    before.close()
    tried_sink.writer("two").write(tried_sink.frame(THIRD), 0)

    ledger_entries = tried_sink.closed(checkpoint="-fresh").last_committed_batches(tried_sink.spark)

    if not _remembers(tried_sink, case):
        assert ledger_entries == ()
        return
    assert [(ledger_entry.writer, ledger_entry.batch) for ledger_entry in ledger_entries] == [
        (before.identity.key, 1)
    ]
    assert ledger_entries[0].at > 0


@ONCE
def test_its_own_last_batch_comes_back_with_what_was_noted(tried_sink: Tried, case: Case) -> None:
    before = tried_sink.writer()
    before.write(tried_sink.frame(FIRST), 0)
    before.write(tried_sink.frame(SECOND), 1)
    before.close()

    writer = tried_sink.closed()
    ledger_entries = writer.last_committed_batches(tried_sink.spark)
    writer.open(tried_sink.spark, tried_sink.frame([]).schema)

    if not _remembers(tried_sink, case):
        assert ledger_entries == ()
        # Of a batch that is there it may know the number, and nothing of what was noted.
        assert (ledger_entry := writer.entry(1)) is None or not ledger_entry.note.is_known
        return
    entry = writer.entry(1)
    assert entry is not None
    assert [item.note for item in ledger_entries] == [entry.note]
    assert entry.note == replace(
        before.note(1), content=before.note(1).content if before.has_checksums else None
    )


def _remembers(tried_sink: Tried, case: Case) -> bool:
    """Does the kind keep an account that outlives the process? Its guarantee says so."""
    return tried_sink.target.sink.guarantee(case.mode)[0] is Guarantee.EXACTLY_ONCE


@ONCE
def test_every_kind_of_the_registry_is_tried(case: Case) -> None:
    assert set(registry.sinks()) == set(MAKERS) | set(UNREADABLE) | IN_SANDBOX
    assert case.kind in {*MAKERS, *IN_SANDBOX}
