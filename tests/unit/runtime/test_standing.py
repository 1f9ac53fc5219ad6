"""What a start makes of what a sink remembers, without Spark: whose batches they are, and which are no strangers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from millstream.checkpoint import adopted
from millstream.checkpoint.folder import Checkpoint
from millstream.connectors.remembered import Entry, Note
from millstream.connectors.sink import Sink, SinkIdentity, Writer, Written
from millstream.diagnostics.failure import CannotGoOn, Unfit
from millstream.runtime.notes import Notes
from millstream.runtime.standing import Standing
from millstream.spec.guarantee import Guarantee
from millstream.spec.mode import OutputMode

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

    def __init__(self, identity: SinkIdentity, entries: Sequence[Entry]) -> None:
        super().__init__(identity)
        self.entries = tuple(entries)

    def remembered(self, spark: Any) -> tuple[Entry, ...]:  # noqa: ARG002
        return self.entries

    def write(self, frame: Any, batch_id: int) -> Written:  # noqa: ARG002
        return Written()


class Told:
    """Events, kept."""

    def __init__(self) -> None:
        self.events: list[str] = []

    def tell(self, event: str, *_: Any, **__: Any) -> None:
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
    checkpoint: Checkpoint, *entries: Entry, adopt: bool = False, keyed: bool = False
) -> tuple[bool, list[str]]:
    """Does it fit, and what is told?"""
    told = Told()
    writer = Remembering(SinkIdentity("shop", "q", "3f0c", "delta:out", OutputMode.APPEND), entries)
    standing = Standing("q", checkpoint, Notes(checkpoint, "3f0c"), told, adopt=adopt)  # type: ignore[arg-type]
    fits = standing.survey(None, [(Table(keyed=keyed), writer)])  # type: ignore[arg-type]
    return fits, told.events


def own(batch: int, at: int = 50, **note: Any) -> Entry:
    return Entry(MINE, batch, at, Note(**note))


def other(batch: int, at: int = 90) -> Entry:
    return Entry(OTHER, batch, at)


def test_a_sink_that_remembers_nothing_fits(checkpoint: Checkpoint) -> None:
    assert survey(checkpoint) == (True, [])


def test_its_own_last_batch_with_its_own_offsets_fits(checkpoint: Checkpoint) -> None:
    assert survey(checkpoint, own(7, offsets=('{"clicks": {"0": 70}}',), planned=1007)) == (True, [])


def test_an_entry_of_an_older_version_fits(checkpoint: Checkpoint) -> None:
    assert survey(checkpoint, own(7)) == (True, [])


def test_a_batch_that_is_not_planned_is_refused(checkpoint: Checkpoint) -> None:
    with pytest.raises(Unfit, match="holds batch 8 of query 'q', which its checkpoint has not planned"):
        survey(checkpoint, own(8))


@pytest.mark.parametrize(
    "note", [{"offsets": ('{"clicks": {"0": 71}}',), "planned": 1007}, {"planned": 1008}]
)
def test_a_batch_that_was_planned_otherwise_is_refused(checkpoint: Checkpoint, note: dict[str, Any]) -> None:
    with pytest.raises(Unfit, match="with other offsets"):
        survey(checkpoint, own(7, **note))


def test_an_entry_whose_offsets_are_no_longer_kept_fits(checkpoint: Checkpoint) -> None:
    (checkpoint.folder / "offsets" / "5").unlink()

    assert survey(checkpoint, own(5, planned=9)) == (True, [])


def test_taken_back_and_adopted_it_needs_another_id(checkpoint: Checkpoint) -> None:
    assert survey(checkpoint, own(8), adopt=True) == (False, [])


def test_batches_of_another_checkpoint_are_refused_with_every_choice(checkpoint: Checkpoint) -> None:
    with pytest.raises(CannotGoOn, match="from another checkpoint, up to batch 41") as refused:
        survey(checkpoint, other(41))

    for choice in ("id 77aa back", "--adopt --select q", "empty it", "another target"):
        assert choice in refused.value.fix


def test_batches_from_before_its_own_are_no_strangers(checkpoint: Checkpoint) -> None:
    assert survey(checkpoint, own(7), other(41, at=40)) == (True, [])


def test_batches_from_after_its_own_are_refused(checkpoint: Checkpoint) -> None:
    with pytest.raises(Unfit, match="has written to it since this one did"):
        survey(checkpoint, own(7), other(41, at=60))


def test_batches_of_a_backfill_are_no_strangers(checkpoint: Checkpoint) -> None:
    assert survey(checkpoint, Entry("backfill-0a1b/delta:out", 0, 90)) == (True, [])


def test_rows_that_replace_rows_are_a_warning(checkpoint: Checkpoint) -> None:
    assert survey(checkpoint, other(41), keyed=True) == (True, ["warning"])


def test_an_adoption_holds_up_to_its_batch(checkpoint: Checkpoint) -> None:
    assert survey(checkpoint, other(41), adopt=True) == (True, ["adopted"])
    assert adopted.last(checkpoint.folder) == {OTHER: 41}
    assert survey(checkpoint, other(41)) == (True, [])

    with pytest.raises(Unfit):
        survey(checkpoint, other(42))


def test_torn_adoptions_are_told_with_a_cure(checkpoint: Checkpoint) -> None:
    (checkpoint.folder / "_millstream").mkdir()
    (checkpoint.folder / "_millstream" / "adopted.json").write_text("[{")

    with pytest.raises(CannotGoOn, match=r"adopted\.json cannot be read"):
        survey(checkpoint)


def test_another_id_leaves_no_stale_sum_beside_it(checkpoint: Checkpoint) -> None:
    (checkpoint.folder / ".metadata.crc").write_text("sum")

    made = checkpoint.renew_id()

    assert checkpoint.query_id() == made != "3f0c"
    assert not (checkpoint.folder / ".metadata.crc").exists()
