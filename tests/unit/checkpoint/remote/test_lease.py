"""A lease of a remote checkpoint: one driver has it, and one that was suspended changes nothing when replaced."""

from __future__ import annotations

import errno
import json
import threading
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from millstream.checkpoint import metadata
from millstream.checkpoint.atomic_file import write_durably
from millstream.checkpoint.folder import Checkpoint
from millstream.checkpoint.lock import (
    CheckpointLock,
    find_lost_lease,
    find_owner,
    is_owned,
    require_lease,
    require_owner,
)
from millstream.checkpoint.operations.rewind import rewind_checkpoint
from millstream.checkpoint.operations.transfer import copy_checkpoint, move_checkpoint
from millstream.checkpoint.remote import lease as leases
from millstream.checkpoint.remote import lease_owner
from millstream.checkpoint.remote.fence import RenameFence, set_fence
from millstream.checkpoint.remote.file_system import set_file_system
from millstream.checkpoint.remote.lease import Lease, empty_checkpoint
from millstream.checkpoint.remote.lease_files import LeaseFiles
from millstream.checkpoint.remote.path import RemotePath
from millstream.diagnostics.failure import CheckpointError, InvalidInput, NotReady, Unreachable
from millstream.engine.run import lock_checkpoints
from millstream.pipeline.model import Pipeline
from remote_files import MemoryFileSystem

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER = RemotePath("hdfs://nn/checkpoints/orders")
RENEWAL, LAPSE = 0.02, 0.2
# Of a driver that must see another one's renewal first, on a machine that may stand still for a while.
PATIENT = 60.0
TAKEN: list[Lease] = []


@pytest.fixture(autouse=True)
def files() -> Iterator[MemoryFileSystem]:
    system = MemoryFileSystem()
    set_file_system(system)
    yield system
    for lease in TAKEN:
        lease.release()
    await_renewals()
    TAKEN.clear()
    set_file_system(None)


def await_renewals(owner: str = "") -> None:
    """Wait for the end of the threads that renew the released leases of an owner, or of all."""
    for thread in threading.enumerate():
        if thread.name.startswith(f"lease of {owner}"):
            thread.join(30)


def take(owner: str, lapse: float = LAPSE, renewal: float = RENEWAL) -> Lease:
    lease = Lease(FOLDER, owner, renewal=renewal, lapse=lapse)
    lease.take()
    TAKEN.append(lease)
    return lease


def suspend(lease: Lease) -> None:
    """Let a lease be renewed no more, as if its process were stopped, and forget that this process has it."""
    lease._released.set()
    await_renewals(lease.owner)
    leases._leases.pop(str(FOLDER))


def resume(lease: Lease) -> None:
    """Let the code of the suspended driver run again: it goes through the folder of its own lease."""
    leases._leases[str(FOLDER)] = lease
    set_fence(str(FOLDER), RenameFence(str(FOLDER), str(folder_of(lease))))


def folder_of(lease: Lease) -> RemotePath:
    """Return the folder through which a lease makes changes."""
    assert isinstance(lease._store, LeaseFiles)
    return lease._store._own_folder


def test_a_lease_that_is_renewed_is_refused_to_a_second_driver_with_the_name_of_its_owner() -> None:
    first = take("shop.orders")

    with pytest.raises(CheckpointError, match=r"is held by 'shop.orders' \(process \d+ on "):
        take("shop.copy", lapse=PATIENT)

    first.require()
    assert (first.number, is_owned(FOLDER)) == (0, True)


def test_a_released_lease_is_taken_at_once_with_the_next_number() -> None:
    first = take("one")
    assert find_owner(FOLDER) is not None
    first.release()
    assert find_owner(FOLDER) is None

    second = take("two", lapse=3600)

    assert second.number == first.number + 1


def test_a_driver_that_was_suspended_changes_nothing_after_another_has_taken_over() -> None:
    first = take("one")
    write_durably(FOLDER / "record", "of one")
    suspend(first)
    second = take("two")
    write_durably(FOLDER / "record", "of two")
    (FOLDER / "offsets").mkdir()
    write_durably(FOLDER / "offsets" / "0", "of two")

    resume(first)

    for change in (
        lambda: write_durably(FOLDER / "record", "late"),
        lambda: (FOLDER / "offsets" / "0").rename(FOLDER / "aside"),
        lambda: (FOLDER / "offsets" / "0").unlink(),
        lambda: (FOLDER / "offsets").delete_all(),
    ):
        with pytest.raises(CheckpointError, match="taken over"):
            change()
    assert (FOLDER / "record").read_text() == "of two"
    assert (FOLDER / "offsets" / "0").read_text() == "of two"
    assert second.number == first.number + 1


def test_a_driver_that_was_suspended_ends_before_its_next_batch() -> None:
    first = take("one")
    suspend(first)
    second = take("two")
    resume(first)

    # As much time has passed as another driver needs.
    first._confirmed_at -= 10 * LAPSE
    with pytest.raises(CheckpointError, match="taken over by 'two'"):
        require_lease(FOLDER)

    assert find_lost_lease(FOLDER) is not None
    assert not is_owned(FOLDER)
    with pytest.raises(CheckpointError, match="taken over by 'two'"):
        require_owner(FOLDER)
    second.require()


def test_the_renewing_thread_finds_out_that_the_lease_is_lost(files: MemoryFileSystem) -> None:
    first = take("one")
    files.create("hdfs://nn/checkpoints/orders/_millstream/lease/1", json.dumps({"owner": "two"}).encode())
    files.delete("hdfs://nn/checkpoints/orders/_millstream/lease/0")

    renewing = next(thread for thread in threading.enumerate() if thread.name == "lease of one")
    renewing.join(30)

    assert not renewing.is_alive()
    assert "'two'" in str(find_lost_lease(FOLDER))
    assert first.find_loss() is not None


def test_while_the_name_node_is_away_a_batch_fails_and_the_lease_is_kept(files: MemoryFileSystem) -> None:
    first = take("one", renewal=3600.0)
    files.is_away = True
    first._confirmed_at -= 10 * LAPSE

    with pytest.raises(OSError, match="does not answer"):
        require_lease(FOLDER)

    files.is_away = False
    require_lease(FOLDER)
    assert is_owned(FOLDER)


def test_a_run_that_starts_while_the_name_node_is_away_says_so(files: MemoryFileSystem) -> None:
    pipeline = Pipeline.model_validate(
        {
            "name": "shop",
            "defaults": {"checkpoints": str(FOLDER.parent)},
            "sources": {"orders": {"rate": {}}},
            "queries": {"orders": {"from": "orders", "to": {"console": {}}}},
        }
    )

    def refuse(uri: str, mode: int | None = None) -> None:  # noqa: ARG001 - as the protocol has it
        raise ConnectionRefusedError(errno.ECONNREFUSED, "Call From driver to nn:8020 failed")

    files.make_folder = refuse  # type: ignore[method-assign]
    with (
        ExitStack() as locks,
        pytest.raises(
            Unreachable, match=f"the file system of checkpoint folder {FOLDER} does not answer: Call From"
        ),
    ):
        lock_checkpoints(pipeline, ["orders"], locks)


def test_of_drivers_that_wait_for_the_same_lapse_one_gets_the_lease() -> None:
    suspend(take("gone"))
    taken, refused = [], []

    def compete(name: str) -> None:
        try:
            # Long enough to see the renewal of the one that is faster.
            taken.append(take(name, lapse=2.0))
        except CheckpointError as error:
            refused.append(error)

    drivers = [threading.Thread(target=compete, args=(f"driver {number}",)) for number in range(5)]
    for driver in drivers:
        driver.start()
    for driver in drivers:
        driver.join(60)

    assert (len(taken), len(refused)) == (1, 4)
    taken[0].find_successor()
    taken[0].require()


def test_a_driver_that_stood_still_before_it_takes_a_lease_does_not_take_a_number_that_was_deleted() -> None:
    take("one").release()
    late = LeaseFiles(FOLDER)
    assert late.find_newest() == (0, True)
    take("two").release()
    third = take("three")

    with pytest.raises(FileExistsError):
        late.create(1, {"owner": "late"})

    assert late.find_newest() == (2, False)
    assert [path.name for path in (FOLDER / "_millstream" / "lease").glob("1*")] == []
    assert third.find_successor() is None


def test_a_driver_that_stood_still_while_it_took_a_lease_changes_nothing_once_another_has_taken_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fence_former, others = LeaseFiles.fence_former, []

    def stand_still(store: LeaseFiles, number: int) -> RenameFence:
        if not others:
            others.append("three")
            take("three")
        return fence_former(store, number)

    monkeypatch.setattr(LeaseFiles, "fence_former", stand_still)
    # It is not renewed while it stands still.
    second = take("two", renewal=3600.0)

    assert find_newest_number() == second.number + 1
    with pytest.raises(CheckpointError, match="taken over"):
        write_durably(FOLDER / "record", "late")
    assert not (FOLDER / "record").exists()


def find_newest_number() -> int | None:
    return LeaseFiles(FOLDER).find_newest()[0]


def test_a_driver_that_ended_on_this_machine_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    suspend(take("killed"))
    monkeypatch.setattr(lease_owner, "_is_alive", lambda _: False)

    waiting = take("next", lapse=3600)

    assert waiting.number == 1


def test_a_process_of_another_machine_with_the_same_number_is_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first = take("elsewhere")
    monkeypatch.setattr(lease_owner, "_machine", lambda: "another kernel")
    monkeypatch.setattr(lease_owner, "_is_alive", lambda _: False)

    with pytest.raises(CheckpointError, match="held by 'elsewhere'"):
        take("here", lapse=PATIENT)

    first.require()


def test_what_a_former_driver_was_moving_is_kept_and_its_drafts_are_deleted(files: MemoryFileSystem) -> None:
    lock = take("one")
    files.create(f"{folder_of(lock)}/draft-1", b"half")
    suspend(lock)
    second = take("two")
    files.create(f"{folder_of(second)}/moved-1", b"rows")
    suspend(second)

    third = take("three")

    aside = FOLDER / "_millstream" / "aside"
    assert [path.name for path in aside.glob("*/*")] == ["moved-1"]
    assert list((FOLDER / "_millstream" / "lease").iterdir()) == [
        FOLDER / "_millstream" / "lease" / "2",
        folder_of(third),
    ]
    third.require()


def test_numbers_go_on_after_a_reset() -> None:
    first = take("one")
    Checkpoint(FOLDER).renew_id()
    (FOLDER / "state").mkdir()
    empty_checkpoint(FOLDER)
    first.release()

    assert [path.name for path in FOLDER.iterdir()] == ["_millstream"]
    assert take("two").number == 1


def test_a_checkpoint_that_is_not_locked_is_not_changed(files: MemoryFileSystem) -> None:
    with pytest.raises(CheckpointError, match="not locked"):
        write_durably(RemotePath("hdfs://nn/other/metadata"), "{}")

    assert not files.files


def test_a_lock_of_a_run_covers_the_spool_beside_the_checkpoint() -> None:
    spool = FOLDER.parent / "_set_aside" / "orders"
    with CheckpointLock(FOLDER, "shop.orders", [spool]):
        spool.mkdir()
        write_durably(spool / "note", "kept")

    assert (spool / "note").read_text() == "kept"
    with pytest.raises(CheckpointError, match="not locked"):
        write_durably(spool / "note", "later")


def test_another_store_is_refused(files: MemoryFileSystem) -> None:
    with pytest.raises(NotReady, match="is on 'gs', where a run cannot lock it"):
        CheckpointLock(RemotePath("gs://bucket/orders"), "shop.orders").take()

    assert not files.files


def test_what_a_checkpoint_records_is_read_from_the_remote_file_system() -> None:
    record = metadata.QueryMetadata("orders", "id", (), (), (), "append", {}, {}, {})
    with CheckpointLock(FOLDER, "shop.orders"):
        new_id = Checkpoint(FOLDER).ensure_id()
        metadata.write(FOLDER, record)
        metadata.write(FOLDER, metadata.QueryMetadata("orders", "id", (), (), (), "update", {}, {}, {}))

    newest = metadata.read(FOLDER)
    assert newest is not None
    assert (newest.output_mode, Checkpoint(FOLDER).query_id()) == ("update", new_id)
    assert [path.name for path in (FOLDER / "_millstream").glob("record-*.json")] == ["record-1.json"]


@pytest.mark.parametrize("operation", ["rewind", "copy", "move"])
def test_what_only_a_local_folder_allows_is_refused_in_a_sentence(operation: str) -> None:
    calls = {
        "rewind": lambda: rewind_checkpoint(FOLDER, 1),
        "copy": lambda: copy_checkpoint(FOLDER, FOLDER.with_name("copy")),
        "move": lambda: move_checkpoint(FOLDER, FOLDER.with_name("moved")),
    }

    with pytest.raises(InvalidInput, match=f"a {operation} is not possible for hdfs://nn/checkpoints/orders"):
        calls[operation]()
