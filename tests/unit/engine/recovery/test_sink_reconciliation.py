"""What a start makes of what a sink remembers, without Spark: whose batches they are, and which are no strangers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from millstream.checkpoint import adoption_log, empty_batches, metadata
from millstream.checkpoint.folder import Checkpoint
from millstream.checkpoint.metadata import QueryMetadata
from millstream.checkpoint.remote.file_system import set_file_system
from millstream.checkpoint.remote.path import RemotePath
from millstream.connectors.api.batch_ledger import BatchMetadata, LedgerEntry
from millstream.connectors.api.sink import Sink
from millstream.connectors.api.writer import SinkIdentity, Writer, WriteResult
from millstream.diagnostics.failure import CheckpointError, CheckpointMismatch
from millstream.engine.delivery.batch_metadata import BatchNotes
from millstream.engine.recovery.missing_batches import format_batches
from millstream.engine.recovery.sink_reconciliation import SinkReconciliation
from millstream.spec.guarantee import Guarantee
from millstream.spec.output_mode import OutputMode
from remote_files import MemoryObjectStore

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

MINE, OTHER = "3f0c/delta:out", "77aa/delta:out"
OFFSETS = 'v1\n{"batchWatermarkMs":0,"batchTimestampMs":%d,"conf":{}}\n{"clicks":{"0":%d}}\n'


class Table(Sink):
    """A sink of nothing."""

    kind = "table"
    modes = frozenset(OutputMode)
    keyed: bool = False

    def writer(self, identity: SinkIdentity) -> Writer:
        return Remembering(identity, ())

    def guarantee(self, mode: OutputMode) -> tuple[Guarantee, str]:  # noqa: ARG002
        return Guarantee.EXACTLY_ONCE, ""

    def target(self) -> str:
        return "out"

    @property
    def row_key(self) -> tuple[str, ...]:
        return ("id",) if self.keyed else ()


class Remembering(Writer):
    """A writer that says what it is told."""

    has_ledger = True

    def __init__(
        self, identity: SinkIdentity, entries: Sequence[LedgerEntry], *, merges: bool = False
    ) -> None:
        super().__init__(identity)
        self.entries = tuple(entries)
        self.skips_empty = merges

    def last_committed_batches(self, spark: Any) -> tuple[LedgerEntry, ...]:  # noqa: ARG002
        return self.entries

    hidden: LedgerEntry | None = None
    """What an open transaction of somebody else hides from `last_committed_batches`."""

    def newest(self, spark: Any) -> LedgerEntry | None:
        return self.hidden or super().newest(spark)

    def write(self, frame: Any, batch_id: int) -> WriteResult:  # noqa: ARG002
        return WriteResult()


class Told:
    """Events, kept."""

    def __init__(self) -> None:
        self.events: list[str] = []

    def emit(self, event: str, *_: Any, **__: Any) -> None:
        self.events.append(event)


@pytest.fixture
def checkpoint(tmp_path: Path) -> Checkpoint:
    """Of id 3f0c, with batches 0 to 7 planned."""
    (tmp_path / "offsets").mkdir()
    (tmp_path / "metadata").write_text(json.dumps({"id": "3f0c"}))
    for batch in range(8):
        (tmp_path / "offsets" / str(batch)).write_text(OFFSETS % (1000 + batch, 10 * batch))
    return Checkpoint(tmp_path)


def survey(
    checkpoint: Checkpoint,
    *entries: LedgerEntry,
    adopt: bool = False,
    keyed: bool = False,
    merges: bool = False,
    mode: OutputMode = OutputMode.APPEND,
    waiting: Sequence[int] = (),
    query: str = "q",
) -> tuple[bool, list[str]]:
    """Does it fit, and what is told?"""
    messages = Told()
    writer = Remembering(SinkIdentity("shop", query, "3f0c", "delta:out", mode), entries, merges=merges)
    standing = SinkReconciliation(
        query,
        checkpoint,
        BatchNotes(checkpoint, "3f0c"),
        messages,  # type: ignore[arg-type]
        adopt=adopt,
        waiting=lambda _: waiting,
        remedy=lambda _, batches: f"backfill {format_batches(batches)}",
    )
    fits = standing.survey(None, [(Table(keyed=keyed), writer)])  # type: ignore[arg-type]
    return fits, messages.events


def own_entry(batch: int, at: int = 50, **note: Any) -> LedgerEntry:
    return LedgerEntry(MINE, batch, at, BatchMetadata(**note))


def other(batch: int, at: int = 90) -> LedgerEntry:
    return LedgerEntry(OTHER, batch, at)


@pytest.mark.parametrize("adopt", [False, True])
def test_a_checkpoint_on_s3_cannot_get_another_id_so_an_older_one_needs_another_folder(
    *, adopt: bool
) -> None:
    set_file_system(MemoryObjectStore())
    checkpoint = Checkpoint(RemotePath("s3a://bucket/checkpoints/q"))

    try:
        with pytest.raises(CheckpointMismatch, match="the checkpoint is older than the sink") as refused:
            survey(checkpoint, own_entry(9), adopt=adopt)
    finally:
        set_file_system(None)

    assert "or give the query another checkpoint (queries.q.checkpoint)" in refused.value.fix
    assert "run --adopt" not in refused.value.fix


def test_a_sink_that_remembers_nothing_fits(checkpoint: Checkpoint) -> None:
    assert survey(checkpoint) == (True, [])


def test_its_own_last_batch_with_its_own_offsets_fits(checkpoint: Checkpoint) -> None:
    assert survey(checkpoint, own_entry(7, offsets=('{"clicks": {"0": 70}}',), planned=1007)) == (True, [])


def test_an_entry_of_an_older_version_fits(checkpoint: Checkpoint) -> None:
    assert survey(checkpoint, own_entry(7)) == (True, [])


def test_a_batch_that_is_not_planned_is_refused(checkpoint: Checkpoint) -> None:
    with pytest.raises(CheckpointMismatch, match="has batch 8 of query 'q', which is not in the checkpoint"):
        survey(checkpoint, own_entry(8))


@pytest.mark.parametrize(
    "note", [{"offsets": ('{"clicks": {"0": 71}}',), "planned": 1007}, {"planned": 1008}]
)
def test_a_batch_that_was_planned_otherwise_is_refused(checkpoint: Checkpoint, note: dict[str, Any]) -> None:
    with pytest.raises(CheckpointMismatch, match="with other offsets"):
        survey(checkpoint, own_entry(7, **note))


def test_an_entry_whose_offsets_are_no_longer_kept_fits(checkpoint: Checkpoint) -> None:
    (checkpoint.folder / "offsets" / "5").unlink()

    assert survey(checkpoint, own_entry(5, planned=9)) == (True, [])


def test_taken_back_and_adopted_it_needs_another_id(checkpoint: Checkpoint) -> None:
    assert survey(checkpoint, own_entry(8), adopt=True) == (False, [])


def test_batches_of_another_checkpoint_are_refused_with_every_choice(checkpoint: Checkpoint) -> None:
    with pytest.raises(CheckpointError, match="from another checkpoint, up to batch 41") as error:
        survey(checkpoint, other(41))

    for choice in ("id 77aa back", "--adopt --select q", "empty it", "another target"):
        assert choice in error.value.fix


def test_batches_from_before_its_own_are_no_strangers(checkpoint: Checkpoint) -> None:
    assert survey(checkpoint, own_entry(7), other(41, at=40)) == (True, [])


def test_batches_from_after_its_own_are_refused(checkpoint: Checkpoint) -> None:
    with pytest.raises(CheckpointMismatch, match="has written to it since this checkpoint did"):
        survey(checkpoint, own_entry(7), other(41, at=60))


FILLED = LedgerEntry("backfill-0a1b/delta:out", 0, 1_767_225_600_000)


def test_batches_of_a_backfill_are_no_strangers_once_a_batch_is_committed(checkpoint: Checkpoint) -> None:
    (checkpoint.folder / "commits").mkdir()
    (checkpoint.folder / "commits" / "7").write_text("v1\n{}")

    assert survey(checkpoint, FILLED) == (True, [])


def test_rows_of_a_backfill_are_refused_by_a_checkpoint_that_would_write_them_again(
    checkpoint: Checkpoint,
) -> None:
    with pytest.raises(
        CheckpointMismatch, match=r"has rows of a backfill of 2026-01-01 00:00 UTC for query 'q'"
    ):
        survey(checkpoint, FILLED)

    assert survey(checkpoint, FILLED, keyed=True) == (True, [])
    assert survey(checkpoint, FILLED, adopt=True) == (True, ["adopted"])
    assert survey(checkpoint, FILLED) == (True, [])


def test_rows_that_replace_rows_are_a_warning(checkpoint: Checkpoint) -> None:
    assert survey(checkpoint, other(41), keyed=True) == (True, ["warning"])


def test_an_adoption_holds_up_to_its_batch(checkpoint: Checkpoint) -> None:
    assert survey(checkpoint, other(41), adopt=True) == (True, ["adopted"])
    assert adoption_log.last_adopted_batches(checkpoint.folder) == {OTHER: 41}
    assert survey(checkpoint, other(41)) == (True, [])

    with pytest.raises(CheckpointMismatch):
        survey(checkpoint, other(42))


def test_torn_adoptions_are_told_with_a_cure(checkpoint: Checkpoint) -> None:
    (checkpoint.folder / "_millstream").mkdir()
    (checkpoint.folder / "_millstream" / "adopted.json").write_text("[{")

    with pytest.raises(CheckpointError, match=r"adopted\.json cannot be read"):
        survey(checkpoint)


def test_another_id_leaves_no_stale_sum_beside_it(checkpoint: Checkpoint) -> None:
    (checkpoint.folder / ".metadata.crc").write_text("sum")

    result = checkpoint.renew_id()

    assert checkpoint.query_id() == result != "3f0c"
    assert not (checkpoint.folder / ".metadata.crc").exists()


@pytest.fixture
def committed(checkpoint: Checkpoint) -> Checkpoint:
    """All of its batches, 0 to 7, are committed."""
    (checkpoint.folder / "commits").mkdir()
    for batch in range(8):
        (checkpoint.folder / "commits" / str(batch)).write_text("v1\n{}")
    return checkpoint


def recorded(checkpoint: Checkpoint, **sink: str) -> None:
    """The record of the last start, whose only sink says this of itself."""
    sinks = ({"key": MINE, "kind": "table", "target": "out", **sink},)
    metadata.write(checkpoint.folder, QueryMetadata("q", "3f0c", (), (), sinks, "append", {}, {}, {}))


def test_a_sink_that_is_behind_its_checkpoint_is_refused_with_the_batches_that_it_lacks(
    committed: Checkpoint,
) -> None:
    with pytest.raises(
        CheckpointMismatch, match="lacks batches 5 to 7 of query 'q', which its checkpoint has"
    ) as error:
        survey(committed, own_entry(4))

    assert error.value.fix == "backfill 5-7"


def test_a_renamed_query_whose_sink_is_behind_is_refused_too(committed: Checkpoint) -> None:
    """The ledger names the checkpoint, which keeps its id when its folder is renamed with the query."""
    with pytest.raises(CheckpointMismatch, match="lacks batches 5 to 7 of query 'renamed'"):
        survey(committed, own_entry(4), query="renamed")


def test_batches_that_wait_for_the_sink_are_not_missing(committed: Checkpoint) -> None:
    assert survey(committed, own_entry(4), waiting=(5, 6, 7)) == (True, [])
    with pytest.raises(CheckpointMismatch, match="lacks batch 5 of"):
        survey(committed, own_entry(4), waiting=(6, 7))


def test_going_on_without_batches_is_kept_and_holds_for_these_alone(committed: Checkpoint) -> None:
    assert survey(committed, own_entry(4), adopt=True) == (True, ["adopted"])
    assert adoption_log.read_missing(committed.folder, MINE) == {5, 6, 7}
    assert survey(committed, own_entry(4)) == (True, [])

    with pytest.raises(CheckpointMismatch, match="lacks batch 4 of"):
        survey(committed, own_entry(3))


def test_a_sink_that_lost_everything_is_refused_from_the_batch_with_which_it_began(
    committed: Checkpoint,
) -> None:
    recorded(committed, since="2")

    with pytest.raises(CheckpointMismatch, match="lacks batches 2 to 7"):
        survey(committed)


def test_a_sink_lacks_no_batch_before_the_first_is_committed(checkpoint: Checkpoint) -> None:
    recorded(checkpoint, since="0")

    assert survey(checkpoint) == (True, [])


def test_a_sink_at_another_place_has_received_nothing_yet(committed: Checkpoint) -> None:
    recorded(committed, since="0", target="elsewhere")

    assert survey(committed) == (True, [])


def test_a_sink_that_was_added_with_the_last_start_lacks_nothing(committed: Checkpoint) -> None:
    recorded(committed, since="8")

    assert survey(committed) == (True, [])


def test_a_sink_that_kept_no_ledger_at_the_last_start_lacks_nothing(committed: Checkpoint) -> None:
    recorded(committed, since="")

    assert survey(committed) == (True, [])


def test_an_empty_sink_in_a_record_of_an_older_version_is_a_warning(committed: Checkpoint) -> None:
    recorded(committed)

    assert survey(committed) == (True, ["warning"])


def test_a_result_that_each_batch_replaces_whole_is_a_warning(committed: Checkpoint) -> None:
    assert survey(committed, own_entry(4), mode=OutputMode.COMPLETE) == (True, ["warning"])


def test_empty_batches_of_a_merge_are_not_missing(committed: Checkpoint) -> None:
    empty_batches.begin(committed.folder, "delta:out", 3)
    for batch in (5, 6, 7):
        empty_batches.add(committed.folder, "delta:out", batch)

    assert survey(committed, own_entry(4), merges=True) == (True, [])
    with pytest.raises(CheckpointMismatch, match="lacks batch 4 of"):
        survey(committed, own_entry(3), merges=True)


def test_merges_of_an_older_version_are_a_warning_unless_nothing_was_read(committed: Checkpoint) -> None:
    assert survey(committed, own_entry(4), merges=True) == (True, ["warning"])
    for batch in (5, 6, 7):
        (committed.folder / "offsets" / str(batch)).write_text(OFFSETS % (1000 + batch, 40))

    assert survey(committed, own_entry(4), merges=True) == (True, [])


def test_batches_are_named_as_the_option_takes_them() -> None:
    assert format_batches([5]) == "5"
    assert format_batches([5, 6, 7, 9]) == "5-7,9"


def test_an_empty_batch_that_is_planned_anew_explains_nothing(committed: Checkpoint) -> None:
    empty_batches.begin(committed.folder, "delta:out", 3)
    empty_batches.add(committed.folder, "delta:out", 7)
    # A start from a copy that has batches up to 6.
    empty_batches.begin(committed.folder, "delta:out", 7)

    with pytest.raises(CheckpointMismatch, match="lacks batch 7 of"):
        survey(committed, own_entry(6), merges=True)


def test_a_batch_that_an_open_transaction_hides_is_not_missing(
    committed: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Remembering, "hidden", own_entry(7))

    assert survey(committed, own_entry(4)) == (True, [])
