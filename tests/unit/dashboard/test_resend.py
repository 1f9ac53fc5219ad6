"""Dead letters that are delivered again are deleted; every other one stays."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from delta_letters import SPARK, writer_of
from millstream.connectors.api.values.dead_letter_rows import SCHEMA
from millstream.connectors.delta import dead_letter_table
from millstream.connectors.delta.dead_letters import DeltaDeadLetterStore
from millstream.dashboard.run_actions import RunActions, resend_dead_letters

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from millstream.connectors.api.dead_letters import DeadLetter

NOON = datetime(2026, 1, 1, 12, 0, 0, 123456, tzinfo=UTC)


class Store:
    """A Delta table of dead letters, one batch each."""

    def __init__(self, folder: Path) -> None:
        self.letters = DeltaDeadLetterStore.model_validate({"path": str(folder)})
        self._writers = {query: writer_of(folder, query) for query in ("copy", "it's")}
        self._batches = 0

    def write(self, value: bytes, minutes: int = 0, query: str = "copy", **columns: Any) -> None:
        letter = {
            "query": query, "source": "orders", "topic": "t", "partition": 0, "offset": self._batches,
            "value": value, "reason": "bad", "batch_id": self._batches, "at": NOON + timedelta(minutes=minutes),
            **columns,
        }  # fmt: skip
        self._writers[query].keep_rows(SPARK, pa.Table.from_pylist([letter], schema=SCHEMA), self._batches)
        self._batches += 1

    @property
    def values(self) -> list[bytes | None]:
        return sorted(letter.value or b"" for letter in self.letters.all())


class Source:
    """A source that is sent to, during which something else happens."""

    def __init__(self, meanwhile: Any = None, *, accepts: bool = True) -> None:
        self.sent: list[bytes | None] = []
        self._meanwhile, self._accepts = meanwhile, accepts

    def resend(self, topic: str, letters: Sequence[DeadLetter]) -> bool:
        assert topic == "t"
        if self._accepts:
            self.sent += [letter.value for letter in letters]
        if self._meanwhile:
            self._meanwhile()
        return self._accepts


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "letters")


def pipeline(store: Store, **sources: Source) -> Any:
    entries = {name: SimpleNamespace(static=False, source=source) for name, source in sources.items()}
    return SimpleNamespace(letters=store.letters, sources=entries)


def test_a_letter_that_appears_while_others_are_sent_stays_although_it_was_stamped_before(
    store: Store,
) -> None:
    store.write(b"a", minutes=0)
    store.write(b"b", minutes=2, query="it's")
    source = Source(lambda: store.write(b"late", minutes=1))

    assert resend_dead_letters(pipeline(store, orders=source)) == (2, 0)

    assert sorted(source.sent) == [b"a", b"b"]
    assert store.values == [b"late"]


def test_a_row_that_a_sink_refused_and_letters_of_other_sources_stay(store: Store) -> None:
    store.write(b"a")
    store.write(b"refused", topic=None, partition=None, offset=None)
    store.write(b"other", source="paid")

    assert resend_dead_letters(pipeline(store, orders=Source())) == (1, 0)

    assert store.values == [b"other", b"refused"]


def test_the_second_letter_of_a_record_that_two_queries_read_is_deleted_with_the_first(store: Store) -> None:
    store.write(b"a", offset=7)
    store.write(b"a", offset=7, query="it's", minutes=1)
    source = Source()

    assert resend_dead_letters(pipeline(store, orders=source)) == (1, 0)

    assert source.sent == [b"a"]
    assert store.values == []


def test_nothing_is_deleted_that_no_topic_took(store: Store) -> None:
    store.write(b"a")

    assert resend_dead_letters(pipeline(store, orders=Source(accepts=False))) == (0, 0)

    assert store.values == [b"a"]


def test_the_page_says_what_was_sent_and_could_not_be_deleted(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.write(b"a")
    monkeypatch.setattr(DeltaDeadLetterStore, "delete_sent", lambda *_: 1)
    notes: list[str] = []
    actions = RunActions(pipeline(store, orders=Source()), lambda: None, lambda _: None, notes.append)

    text = actions.run("resend", {})

    assert text.startswith("1 dead letter delivered to their topics again; 1 of them stays in delta ")
    assert notes == [f"asked on the page: {text.removesuffix('.')}"]


def test_many_letters_are_deleted_in_portions(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dead_letter_table, "MOST_TIMES", 2)
    for number in range(5):
        store.write(b"a", minutes=number)
    store.write(b"other", source="paid")
    conditions: list[str] = []
    delete = DeltaTable.delete

    def note(table: DeltaTable, condition: str, **options: Any) -> Any:
        conditions.append(condition)
        return delete(table, condition, **options)

    monkeypatch.setattr(DeltaTable, "delete", note)

    assert resend_dead_letters(pipeline(store, orders=Source())) == (5, 0)

    assert [condition.count("arrow_cast") for condition in conditions] == [2, 2, 1]
    assert store.values == [b"other"]
