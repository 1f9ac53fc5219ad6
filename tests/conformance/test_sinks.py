"""What every sink kind must do in every output mode it takes; its declared guarantee says how strictly."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from conformance.targets import MAKERS, UNREADABLE, Case, Place, Row, Target, cases, family, ordered
from millstream.connectors import registry
from millstream.connectors.api.batch_ledger import BatchMetadata
from millstream.connectors.api.sink import SinkIdentity, Writer
from millstream.diagnostics.failure import MillstreamError
from millstream.spec.guarantee import Guarantee

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

# Each test in each mode of each writer; which of the kinds that share one, differs from test to test.
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
        made = self.closed(query)
        made.open(self.spark, self.frame([]).schema)
        return made

    def closed(self, query: str = "one", checkpoint: str = "") -> Writer:
        """The same before it is opened; with another checkpoint where one is named."""
        sink, query_id = self.target.sink, f"id-of-{query}{checkpoint}-{self._own}"
        made = sink.writer(SinkIdentity("shop", query, query_id, f"{sink.kind}:target", self.case.mode))
        made.note = lambda batch: BatchMetadata((f'{{"end": {batch}}}', None), 1000 + batch, f"2:{batch}")
        self._open.append(made)
        return made

    def rows(self) -> list[Row]:
        return self.target.read()

    def assert_holds(self, *batches: list[Row], repeated: bool = False) -> None:
        wanted, got = self.case.holding(*batches), self.rows()
        if repeated and self.repeats:
            wanted, got = ordered(set(wanted)), ordered(set(got))
        assert got == wanted

    def close(self) -> None:
        for writer in self._open:
            writer.close()


@pytest.fixture
def tried(case: Case, tmp_path: Path, spark: SparkSession, request: pytest.FixtureRequest):
    made = Tried(case, case.target(Place(tmp_path, spark, request)), spark)
    yield made
    made.close()


def test_its_settings_have_no_problem_and_the_world_is_ready(tried: Tried, case: Case) -> None:
    assert tried.target.sink.problems(case.mode) == []
    tried.target.sink.probe()


def test_it_opens_and_closes_without_writing(tried: Tried) -> None:
    tried.writer().close()


@pytest.mark.sweep("case")
def test_rows_are_written(tried: Tried) -> None:
    tried.writer().write(tried.frame(FIRST), 0)

    tried.assert_holds(FIRST)


def test_an_empty_batch_writes_nothing_and_leaves_the_target_readable(tried: Tried) -> None:
    writer = tried.writer()
    writer.write(tried.frame([]), 0)

    assert tried.rows() == []

    writer.write(tried.frame(FIRST), 1)

    tried.assert_holds(FIRST)


def test_the_next_batch_does_what_its_mode_says(tried: Tried) -> None:
    writer = tried.writer()
    writer.write(tried.frame(FIRST), 0)
    writer.write(tried.frame(SECOND), 1)

    tried.assert_holds(FIRST, SECOND)


def test_a_replayed_batch_changes_nothing(tried: Tried) -> None:
    writer = tried.writer()
    writer.write(tried.frame(FIRST), 0)
    writer.write(tried.frame(FIRST), 0)

    tried.assert_holds(FIRST, repeated=True)


def test_a_batch_replayed_by_the_next_start_changes_nothing(tried: Tried) -> None:
    before = tried.writer()
    before.write(tried.frame(FIRST), 0)
    before.write(tried.frame(SECOND), 1)
    before.close()

    tried.writer().write(tried.frame(SECOND), 1)

    tried.assert_holds(FIRST, SECOND, repeated=True)


def test_an_older_batch_is_passed_over(tried: Tried) -> None:
    writer = tried.writer()
    writer.write(tried.frame(FIRST), 3)
    writer.write(tried.frame(THIRD), 4)
    writer.write(tried.frame(FIRST), 3)

    tried.assert_holds(FIRST, THIRD, repeated=True)


def test_batch_ids_may_have_gaps(tried: Tried) -> None:
    writer = tried.writer()
    for batch_id, rows in ((2, FIRST), (7, SECOND), (40, THIRD)):
        writer.write(tried.frame(rows), batch_id)

    tried.assert_holds(FIRST, SECOND, THIRD)


def test_two_queries_do_not_mix(tried: Tried) -> None:
    tried.writer("one").write(tried.frame(FIRST), 0)
    tried.writer("two").write(tried.frame(THIRD), 0)

    tried.assert_holds(FIRST, THIRD)


def test_a_null_value_stays_null(tried: Tried) -> None:
    tried.writer().write(tried.frame([("a", None)]), 0)

    tried.assert_holds([("a", None)])


def test_a_null_key_is_kept_once_or_refused_with_a_sentence(tried: Tried, case: Case) -> None:
    writer = tried.writer()
    refused: MillstreamError | None = None
    try:
        writer.write(tried.frame([(None, "1")]), 0)
        writer.write(tried.frame([(None, "2")]), 1)
    except MillstreamError as error:
        refused = error

    if refused is None:
        tried.assert_holds([(None, "1")], [(None, "2")])
        return
    assert case.keyed
    assert "null" in refused.what or "requires a value" in refused.what
    assert refused.fix
    assert tried.rows() == []


@pytest.mark.sweep("case")
def test_odd_characters_come_back_as_they_went(tried: Tried) -> None:
    tried.writer().write(tried.frame(ODD), 0)

    tried.assert_holds(ODD)


def test_it_knows_which_batches_it_holds(tried: Tried) -> None:
    writer = tried.writer()
    assert not writer.holds(0)

    writer.write(tried.frame(FIRST), 5)

    assert not writer.holds(6)
    assert writer.holds(5) or tried.repeats


def test_the_next_start_knows_which_batches_it_holds(tried: Tried) -> None:
    tried.writer().write(tried.frame(FIRST), 5)

    again = tried.writer()

    assert not again.holds(6)
    assert again.holds(5) or tried.repeats


def test_another_query_holds_none_of_them(tried: Tried) -> None:
    tried.writer("one").write(tried.frame(FIRST), 5)

    assert not tried.writer("two").holds(5)


def test_two_rows_of_one_key_in_one_batch_are_refused_by_name(tried: Tried, case: Case) -> None:
    if not case.keyed:
        pytest.skip("rows have no key here")
    writer = tried.writer()

    with pytest.raises(MillstreamError, match=r"same key.*twice-used") as refused:
        writer.write(tried.frame([("twice-used", "1"), ("twice-used", "2")]), 0)

    assert refused.value.fix
    assert not writer.holds(0)


def test_after_a_refused_batch_the_writer_goes_on(tried: Tried, case: Case) -> None:
    writer = tried.writer()
    if case.keyed:
        with pytest.raises(MillstreamError):
            writer.write(tried.frame([("b", "1"), ("b", "2")]), 0)

    writer.write(tried.frame(FIRST), 0)

    tried.assert_holds(FIRST)


def test_show_gives_the_rows_without_spark(tried: Tried) -> None:
    tried.writer().write(tried.frame(FIRST), 0)

    shown = tried.target.sink.rows(10)

    if shown is None:
        pytest.skip("the kind cannot be read without Spark")
    names, rows = shown
    if {"k", "v"} <= set(names):
        at = names.index("k"), names.index("v")
        assert ordered((row[at[0]], row[at[1]]) for row in rows) == ordered(FIRST)
    else:
        assert len(rows) == len(FIRST)


def test_what_it_says_of_itself_holds_no_secret(tried: Tried) -> None:
    sink = tried.target.sink
    password = (
        getattr(getattr(sink, "url", None), "reveal", lambda: ":no password@")().split("@")[0].split(":")[-1]
    )

    said = f"{sink.identity()} {sink.describe()} {sink.target()} {sink!r} {sink.model_dump_json()}"

    assert password not in said


def test_a_fresh_checkpoint_is_told_what_others_of_its_query_wrote_and_nothing_of_other_queries(
    tried: Tried, case: Case
) -> None:
    before = tried.writer()
    before.write(tried.frame(FIRST), 0)
    before.write(tried.frame(SECOND), 1)
    before.close()
    tried.writer("two").write(tried.frame(THIRD), 0)

    told = tried.closed(checkpoint="-fresh").last_committed_batches(tried.spark)

    if not _remembers(tried, case):
        assert told == ()
        return
    assert [(one.writer, one.batch) for one in told] == [(before.identity.key, 1)]
    assert told[0].at > 0


def test_its_own_last_batch_comes_back_with_what_was_noted(tried: Tried, case: Case) -> None:
    before = tried.writer()
    before.write(tried.frame(FIRST), 0)
    before.write(tried.frame(SECOND), 1)
    before.close()

    again = tried.closed()
    told = again.last_committed_batches(tried.spark)
    again.open(tried.spark, tried.frame([]).schema)

    if not _remembers(tried, case):
        assert told == ()
        # Of a batch that is there it may know the number, and nothing of what was noted.
        assert (found := again.entry(1)) is None or not found.note.is_known
        return
    entry = again.entry(1)
    assert entry is not None
    assert [one.note for one in told] == [entry.note]
    assert entry.note == replace(before.note(1), content=before.note(1).content if before.sums else None)


def _remembers(tried: Tried, case: Case) -> bool:
    """Does the kind keep an account that outlives the process? Its guarantee says so."""
    return tried.target.sink.guarantee(case.mode)[0] is Guarantee.EXACTLY_ONCE


def test_every_kind_of_the_registry_is_tried(case: Case) -> None:
    assert set(registry.sinks()) == set(MAKERS) | set(UNREADABLE)
    assert case.kind in MAKERS
