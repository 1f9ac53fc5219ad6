"""Queries that a script starts: what is recorded of each, and what the script reads of it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from millstream.checking.scripts.interception.placeholders import Unknown
from millstream.checking.scripts.interception.recording import Doubt, Recording
from millstream.checking.scripts.interception.sandbox import WaitReached
from millstream.checking.scripts.interception.writers import MOST_RESTARTS, WriterPatch, record_setting

if TYPE_CHECKING:
    from millstream.checking.scripts.interception.streaming_query import CheckedQuery


class Script:
    """A script of one call that starts queries."""

    def __init__(self) -> None:
        self.recording = Recording()
        self.patch = WriterPatch(self.recording)
        self.writer: Any = self.make_writer()

    def make_writer(self) -> Any:
        """Return the writer of a stream."""
        return SimpleNamespace(
            _df=Unknown(Doubt("a stream", "it is one of a test", None), self.recording, streaming=True)
        )

    def start(self, checkpoint: str) -> CheckedQuery:
        """Start a query with the writer."""
        record_setting(self.patch.draft(self.writer), "option", ("checkpointLocation", checkpoint), {})
        return self.patch.started(self.writer, "", None)


def test_two_queries_of_one_writer_have_their_own_settings() -> None:
    script = Script()

    script.start("cp/a")
    script.start("cp/b")

    assert [(query.number, query.checkpoint) for query in script.recording.queries] == [
        (1, "cp/a"),
        (2, "cp/b"),
    ]


def test_a_query_that_a_loop_starts_again_after_its_end_is_recorded_once() -> None:
    script = Script()

    for _ in range(3):
        script.start("cp").awaitTermination(60)

    assert len(script.recording.queries) == 1


def test_queries_of_a_loop_that_waits_for_one_of_them_are_recorded_once() -> None:
    script = Script()

    for _ in range(3):
        script.start("cp/a")
        script.start("cp/b").awaitTermination()

    assert [query.checkpoint for query in script.recording.queries] == ["cp/a", "cp/b"]


def test_a_query_that_another_line_starts_again_is_recorded_again() -> None:
    script = Script()

    script.start("cp/a")
    script.start("cp/b").awaitTermination()
    script.start("cp/a")

    assert [query.checkpoint for query in script.recording.queries] == ["cp/a", "cp/b", "cp/a"]


def test_a_loop_that_starts_its_query_for_ever_ends() -> None:
    script = Script()

    for _ in range(MOST_RESTARTS + 1):
        script.start("cp").stop()

    with pytest.raises(WaitReached):
        script.start("cp")


def test_queries_of_a_loop_that_run_beside_each_other_are_recorded_all() -> None:
    script = Script()

    for _ in range(3):
        script.start("cp")

    assert len(script.recording.queries) == 3


def look(query: CheckedQuery) -> bool:
    """Ask whether a query runs."""
    return query.isActive


def test_a_loop_with_an_end_of_its_own_does_not_wait_for_the_end_of_its_query() -> None:
    script = Script()
    query, seconds = script.start("cp"), 0

    while seconds < 20 and query.isActive:
        seconds += 1
    for _ in range(2):
        query.isActive  # noqa: B018 - the look is what is tested
    if look(query):
        query.stop()

    assert [wait.is_bounded for wait in script.recording.waits] == [True, True, True, True]


def test_a_loop_that_ends_with_its_query_waits_for_it() -> None:
    script = Script()
    first, second = script.start("cp/a"), script.start("cp/b")
    script.writer.active = 1

    while first.isActive:
        pass
    while script.writer.active > 0 and look(second):
        pass

    assert [wait.is_bounded for wait in script.recording.waits] == [False, False]


def test_the_progress_of_a_query_has_a_source_and_durations() -> None:
    script = Script()

    progress = script.start("cp").lastProgress

    assert progress["sources"][0]["numInputRows"] == 0
    assert progress.durationMs["triggerExecution"] == 0
    # What depends on the query is not there, and a script that reads it is not to blame.
    assert script.recording.has_emptied_sources
