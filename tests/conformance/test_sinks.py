"""What every sink kind must do in every output mode it takes; its declared guarantee says how strictly."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

import sweep
from conformance.targets import (
    IN_SANDBOX,
    MAKERS,
    UNREADABLE,
    Case,
    Place,
    Row,
    cases,
    family,
    kinds,
    ordered,
    writers,
)
from conformance.tried_sinks import FIRST, SECOND, THIRD, TriedSink, WrittenSink
from millstream.connectors import registry
from millstream.diagnostics.failure import MillstreamError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.usefixtures("interpreted", "small_batches")

# Sinks that several tests look at: each kind, and each mode of each writer.
_WRITTEN = sweep.covering(cases(), lambda case: [*family(case), *kinds(case)], "written sinks")
WRITTEN = pytest.mark.parametrize("case", _WRITTEN, ids=str)
# What no mode changes is tried once with each writer, and each mode once.
WITH_OTHERS = pytest.mark.parametrize("case", sweep.covering(_WRITTEN, writers, "other starts"), ids=str)
EACH = pytest.mark.parametrize("case", cases(), ids=str)
KEYED = pytest.mark.parametrize("case", [case for case in cases() if case.keyed], ids=str)
ONCE = pytest.mark.sweep(by=writers)

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
    ("null value", None),
]


@pytest.fixture(scope="module")
def written_sinks(
    tmp_path_factory: pytest.TempPathFactory, spark: SparkSession, request: pytest.FixtureRequest
) -> Iterator[Callable[[Case], WrittenSink]]:
    """Sinks that tests look at one after the other; each is written once."""
    sinks: dict[Case, WrittenSink] = {}

    def find_sink(case: Case) -> WrittenSink:
        if case not in sinks:
            place = Place(tmp_path_factory.mktemp("written"), spark, request)
            sinks[case] = WrittenSink(case, case.target(place), spark)
        return sinks[case]

    yield find_sink
    for sink in sinks.values():
        sink.close()


@pytest.fixture
def written_sink(case: Case, written_sinks: Callable[[Case], WrittenSink]) -> WrittenSink:
    return written_sinks(case)


@pytest.fixture
def tried_sink(
    case: Case, tmp_path: Path, spark: SparkSession, request: pytest.FixtureRequest
) -> Iterator[TriedSink]:
    """A sink of this test alone."""
    result = TriedSink(case, case.target(Place(tmp_path, spark, request)), spark)
    yield result
    result.close()


@EACH
@ONCE
def test_its_settings_have_no_problem_and_the_world_is_ready(tried_sink: TriedSink, case: Case) -> None:
    assert tried_sink.target.sink.problems(case.mode) == []
    tried_sink.target.sink.probe()


@EACH
@ONCE
def test_it_opens_and_closes_without_writing(tried_sink: TriedSink) -> None:
    tried_sink.writer().close()


@WRITTEN
def test_rows_are_written(written_sink: WrittenSink, case: Case) -> None:
    assert written_sink.first == case.holding(FIRST)


@WRITTEN
def test_the_next_batch_does_what_its_mode_says(written_sink: WrittenSink, case: Case) -> None:
    assert written_sink.second == case.holding(FIRST, SECOND)


@WRITTEN
def test_it_knows_which_batches_it_holds(written_sink: WrittenSink) -> None:
    _, has_first = written_sink.start
    has_last, has_next = written_sink.knows

    assert (has_first, has_next) == (False, False)
    assert has_last or written_sink.repeats


@WRITTEN
def test_a_replayed_batch_changes_nothing(written_sink: WrittenSink) -> None:
    written_sink.assert_repeated(written_sink.repeated, FIRST, SECOND)


@WRITTEN
def test_an_older_batch_is_passed_over(written_sink: WrittenSink) -> None:
    written_sink.assert_repeated(written_sink.older, FIRST, SECOND)


@WRITTEN
def test_the_next_start_knows_which_batches_it_holds(written_sink: WrittenSink) -> None:
    start = written_sink.next_start

    assert not start.has_next
    assert start.has_last or written_sink.repeats


@WRITTEN
def test_a_batch_replayed_by_the_next_start_changes_nothing(written_sink: WrittenSink) -> None:
    written_sink.assert_repeated(written_sink.next_start.rows, FIRST, SECOND)


@WRITTEN
def test_its_own_last_batch_comes_back_with_what_was_noted(written_sink: WrittenSink) -> None:
    start, (writer, _) = written_sink.next_start, written_sink.start

    if not written_sink.remembers:
        assert start.entries == ()
        # Of a batch that is there it may know the number, and nothing of what was noted.
        assert start.entry is None or not start.entry.note.is_known
        return
    assert start.entry is not None
    assert [item.note for item in start.entries] == [start.entry.note]
    noted = writer.note(written_sink.LAST)
    assert start.entry.note == replace(noted, content=noted.content if writer.has_checksums else None)


@WITH_OTHERS
def test_another_query_holds_none_of_them(written_sink: WrittenSink) -> None:
    assert not written_sink.other_starts.has_batch_of_first


@WITH_OTHERS
def test_two_queries_do_not_mix(written_sink: WrittenSink) -> None:
    written_sink.assert_repeated(written_sink.other_starts.rows, FIRST, SECOND, THIRD)


@WITH_OTHERS
def test_a_fresh_checkpoint_is_told_what_others_of_its_query_wrote_and_nothing_of_other_queries(
    written_sink: WrittenSink,
) -> None:
    entries, (writer, _) = written_sink.other_starts.entries, written_sink.start

    if not written_sink.remembers:
        assert entries == ()
        return
    assert [(entry.writer, entry.batch) for entry in entries] == [(writer.identity.key, written_sink.LAST)]
    assert entries[0].at > 0


@WRITTEN
def test_show_gives_the_rows_without_spark(written_sink: WrittenSink) -> None:
    assert written_sink.first
    expected = written_sink.rows()

    text = written_sink.target.sink.rows(100)

    if text is None:
        pytest.skip("the kind cannot be read without Spark")
    names, rows = text
    if {"k", "v"} <= set(names):
        at = names.index("k"), names.index("v")
        assert ordered((row[at[0]], row[at[1]]) for row in rows) == expected
    else:
        assert len(rows) == len(expected)


@EACH
@ONCE
def test_an_empty_batch_writes_nothing_and_leaves_the_target_readable(tried_sink: TriedSink) -> None:
    writer = tried_sink.writer()
    writer.write(tried_sink.frame([]), 0)

    assert tried_sink.rows() == []

    writer.write(tried_sink.frame(FIRST), 1)

    tried_sink.assert_holds(FIRST)


@EACH
@pytest.mark.sweep(by=kinds)
def test_odd_characters_and_nulls_come_back_as_they_went(tried_sink: TriedSink, case: Case) -> None:
    rows = [*ODD, *([] if case.keyed else [(None, "null key")])]
    tried_sink.writer().write(tried_sink.frame(rows), 0)

    tried_sink.assert_holds(rows)


@KEYED
@ONCE
def test_a_null_key_is_kept_once_or_refused_with_a_sentence(tried_sink: TriedSink) -> None:
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
    assert "null" in refusal.what or "requires a value" in refusal.what
    assert refusal.fix
    assert tried_sink.rows() == []


@KEYED
@ONCE
def test_two_rows_of_one_key_in_one_batch_are_refused_by_name_and_the_writer_goes_on(
    tried_sink: TriedSink,
) -> None:
    writer = tried_sink.writer()

    with pytest.raises(MillstreamError, match=r"same key.*twice-used") as error:
        writer.write(tried_sink.frame([("twice-used", "1"), ("twice-used", "2")]), 0)

    assert error.value.fix
    assert not writer.has_batch(0)
    writer.write(tried_sink.frame(FIRST), 0)
    tried_sink.assert_holds(FIRST)


@EACH
@ONCE
def test_what_it_says_of_itself_holds_no_secret(tried_sink: TriedSink) -> None:
    sink = tried_sink.target.sink
    password = (
        getattr(getattr(sink, "url", None), "reveal", lambda: ":no password@")().split("@")[0].split(":")[-1]
    )

    text = f"{sink.identity()} {sink.describe()} {sink.target()} {sink!r} {sink.model_dump_json()}"

    assert password not in text


@EACH
@ONCE
def test_every_kind_of_the_registry_is_tried(case: Case) -> None:
    assert set(registry.sinks()) == set(MAKERS) | set(UNREADABLE) | IN_SANDBOX
    assert case.kind in {*MAKERS, *IN_SANDBOX}
