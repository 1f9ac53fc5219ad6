"""A checkpoint on S3: one lease object, own files in the folder of its number, and new files of Spark alone."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from millstream.checkpoint import empty_batches, metadata
from millstream.checkpoint.atomic_file import write_durably
from millstream.checkpoint.folder import Checkpoint
from millstream.checkpoint.lock import CheckpointLock, find_lost_lease, find_owner, is_owned, require_lease
from millstream.checkpoint.remote import lease as leases
from millstream.checkpoint.remote import lease_owner, own_files, store_check
from millstream.checkpoint.remote.fence import Fence, find_fence, set_fence
from millstream.checkpoint.remote.file_system import set_file_system
from millstream.checkpoint.remote.lease import Lease, empty_checkpoint
from millstream.checkpoint.remote.object_lease import ObjectLease, read_lease
from millstream.checkpoint.remote.path import RemotePath
from millstream.diagnostics.failure import CheckpointError, InvalidInput
from remote_files import MemoryObjectStore

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.checkpoint.remote.file_system import FileStatus

ROOT = "s3a://bucket/checkpoints/orders"
FOLDER = RemotePath(ROOT)
OWN = FOLDER / "_millstream"
LEASE = f"{ROOT}/_millstream/lease.json"
RENEWAL, LAPSE = 0.02, 0.2
# Of a driver that must see another one's renewal first, on a machine that may stand still for a while.
PATIENT = 60.0
TAKEN: list[Lease] = []


@pytest.fixture(autouse=True)
def store() -> Iterator[MemoryObjectStore]:
    system = MemoryObjectStore()
    set_file_system(system)
    store_check._checked.clear()
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


def take(owner: str, lapse: float = LAPSE) -> Lease:
    lease = Lease(FOLDER, owner, renewal=RENEWAL, lapse=lapse)
    lease.take()
    TAKEN.append(lease)
    return lease


class Suspended:
    """A driver that stands still: its lease is renewed no more. `resume` lets its code run again."""

    def __init__(self, lease: Lease) -> None:
        self._lease, self._fence = lease, find_fence(ROOT)
        lease._released.set()
        await_renewals(lease.owner)
        leases._leases.pop(ROOT)

    def resume(self) -> Fence:
        leases._leases[ROOT] = self._lease
        set_fence(ROOT, self._fence)
        own_files._numbers[ROOT] = self._lease.number
        return self._fence


def test_a_lease_that_is_renewed_is_refused_to_a_second_driver_with_the_name_of_its_owner() -> None:
    first = take("shop.orders")

    with pytest.raises(CheckpointError, match=r"is held by 'shop.orders' \(process \d+ on "):
        take("shop.copy", lapse=PATIENT)

    first.require()
    assert (first.number, is_owned(FOLDER)) == (0, True)


def test_a_released_lease_is_taken_at_once_with_the_next_number() -> None:
    take("one").release()
    assert find_owner(FOLDER) is None

    assert take("two", lapse=3600).number == 1


def test_a_driver_that_ended_on_this_machine_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    Suspended(take("killed"))
    monkeypatch.setattr(lease_owner, "_is_alive", lambda _: False)

    assert take("next", lapse=3600).number == 1


def test_of_drivers_that_wait_for_the_same_lapse_one_gets_the_lease() -> None:
    Suspended(take("gone"))
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
    taken[0].require()
    assert taken[0].find_successor() is None


def test_a_driver_that_stood_still_before_it_takes_a_lease_does_not_replace_another_ones() -> None:
    take("one").release()
    late = ObjectLease(ROOT)
    assert late.find_newest() == (0, True)
    second = take("two")

    with pytest.raises(FileExistsError):
        late.create(1, {"owner": "late"})

    assert second.find_successor() is None


def test_what_a_suspended_driver_writes_after_another_has_taken_over_is_refused_and_read_by_nobody(
    store: MemoryObjectStore,
) -> None:
    suspended = Suspended(take("one"))
    suspended.resume()
    write_durably(OWN / "record.json", "of one")
    suspended = Suspended(leases._leases[ROOT])
    second = take("two")
    assert (OWN / "record.json").read_text() == "of one"
    write_durably(OWN / "record.json", "of two")
    store.write(f"{ROOT}/_millstream/rows/id/sink/drawn/part-0", b"rows that a note of two names")
    fence = suspended.resume()

    for change in (
        lambda: (OWN / "rows" / "id" / "sink" / "drawn").delete_all(),
        lambda: write_durably(OWN / "record.json", "late"),
        lambda: write_durably(OWN / "spool" / "7", "late"),
        lambda: fence.delete(f"{OWN}/record.json"),
    ):
        with pytest.raises(CheckpointError, match="has been taken over by another run"):
            change()

    own_files._numbers[ROOT] = second.number
    assert [path.name for path in OWN.iterdir()] == ["record.json"]
    assert (OWN / "record.json").read_text() == "of two"
    own_files._numbers.pop(ROOT)
    assert (OWN / "record.json").read_text() == "of two"
    assert f"{ROOT}/_millstream/rows/id/sink/drawn/part-0" in store.files


def test_a_change_that_was_not_refused_is_seen_by_the_next_driver(store: MemoryObjectStore) -> None:
    """The successor takes over between a write and the look that follows: then the write is not reported as done."""
    lease = take("one")
    fence = find_fence(ROOT)
    suspended = Suspended(lease)
    write = store.write

    def put_late(uri: str, content: bytes) -> None:
        # The object is written, and the driver stands still before it has looked at its lease.
        write(uri, content)
        store.write = write  # type: ignore[method-assign]
        take("two")
        suspended.resume()

    store.write = put_late  # type: ignore[method-assign]
    with pytest.raises(CheckpointError, match="taken over"):
        fence.write(f"{OWN}/empty_batches.json", b"{}")


def test_a_suspended_start_does_not_delete_the_files_of_its_successor(store: MemoryObjectStore) -> None:
    take("one").release()
    entries = store.entries

    def stand_still(uri: str) -> list[tuple[str, FileStatus]]:
        if uri.endswith("/files"):
            store.entries = entries  # type: ignore[method-assign]
            # The second driver is about to list the folders that it may delete; a third takes over.
            leases._leases[ROOT]._released.set()
            await_renewals("two")
            take("three")
            write_durably(OWN / "record.json", "of three")
        return entries(uri)

    store.entries = stand_still  # type: ignore[method-assign]
    take("two")

    own_files._numbers.clear()
    assert (OWN / "record.json").read_text() == "of three"


def test_a_file_that_its_former_driver_deletes_while_files_are_copied_is_not_taken_for_a_lost_lease(
    store: MemoryObjectStore,
) -> None:
    first = take("one")
    write_durably(OWN / "forgotten.json", "delivered")
    write_durably(OWN / "record.json", "of one")
    first.release()
    read = store.read

    def read_late(uri: str) -> bytes:
        if uri.endswith("/0/forgotten.json"):
            store.delete(uri)
        return read(uri)

    store.read = read_late  # type: ignore[method-assign]
    second = take("two")

    assert [path.name for path in OWN.iterdir()] == ["record.json"]
    assert second.find_successor() is None


def test_a_driver_that_dies_while_it_copies_files_loses_none(store: MemoryObjectStore) -> None:
    first = take("one")
    for number in range(20):
        write_durably(OWN / f"record-{number}.json", str(number))
    first.release()
    write = store.write

    def put_until_death(uri: str, content: bytes) -> None:
        if uri.endswith("record-13.json"):
            raise OSError("the server does not answer")
        write(uri, content)

    store.write = put_until_death  # type: ignore[method-assign]
    with pytest.raises(OSError, match="does not answer"):
        take("two")
    store.write = write  # type: ignore[method-assign]

    third = take("three")

    assert [(OWN / f"record-{number}.json").read_text() for number in range(20)] == list(map(str, range(20)))
    assert third.number == 2
    folders = {path.partition("/files/")[2].partition("/")[0] for path in store.files if "/files/" in path}
    assert folders == {"2"}


def test_files_of_spark_are_created_and_never_replaced_moved_or_deleted(store: MemoryObjectStore) -> None:
    take("one")
    write_durably(FOLDER / "metadata", "first")

    with pytest.raises(CheckpointError, match="was written by another run"):
        write_durably(FOLDER / "metadata", "second")
    for change in (
        lambda: (FOLDER / "metadata").rename(OWN / "aside"),
        lambda: (FOLDER / "metadata").unlink(),
        lambda: empty_checkpoint(FOLDER),
    ):
        with pytest.raises(InvalidInput, match=r"is not (moved|deleted): on S3"):
            change()

    assert store.files[f"{ROOT}/metadata"] == b"first"


def test_a_driver_that_was_suspended_ends_before_its_next_batch() -> None:
    first = take("one")
    suspended = Suspended(first)
    take("two")
    suspended.resume()

    first._confirmed_at -= 10 * LAPSE
    with pytest.raises(CheckpointError, match="taken over by 'two'"):
        require_lease(FOLDER)

    assert find_lost_lease(FOLDER) is not None
    assert not is_owned(FOLDER)


def test_a_renewal_whose_response_was_lost_is_not_taken_for_another_driver(store: MemoryObjectStore) -> None:
    first = take("one", lapse=3600)
    Suspended(first)
    replace = store.replace

    def lose_response(uri: str, content: bytes, tag: str) -> None:
        store.replace = replace  # type: ignore[method-assign]
        replace(uri, content, tag)
        raise OSError("the connection was reset")

    store.replace = lose_response  # type: ignore[method-assign]
    with pytest.raises(OSError, match="reset"):
        first._confirm()

    assert first.find_successor() is None


def test_a_file_of_spark_whose_response_was_lost_is_not_taken_for_another_runs(
    store: MemoryObjectStore,
) -> None:
    take("one")
    create = store.create

    def repeat(uri: str, content: bytes) -> None:
        # The client has lost the response, and asks again by itself.
        create(uri, content)
        create(uri, content)

    store.create = repeat  # type: ignore[method-assign]
    write_durably(FOLDER / "metadata", "first")

    assert (FOLDER / "metadata").read_text() == "first"


def test_while_the_store_is_away_a_batch_fails_and_the_lease_is_kept(store: MemoryObjectStore) -> None:
    first = take("one")
    store.is_away = True
    first._confirmed_at -= 10 * LAPSE

    with pytest.raises(OSError, match="does not answer"):
        require_lease(FOLDER)

    store.is_away = False
    require_lease(FOLDER)
    assert is_owned(FOLDER)


def test_a_deleted_checkpoint_has_no_lease(store: MemoryObjectStore) -> None:
    first = take("one")
    store.files.clear()

    assert first.find_successor() == "another run that has just begun"
    assert read_lease(ROOT) is None


def test_what_a_checkpoint_records_is_read_under_its_lease_and_without_one() -> None:
    record = metadata.QueryMetadata("orders", "id", (), (), (), "append", {}, {}, {})
    with CheckpointLock(FOLDER, "shop.orders"):
        new_id = Checkpoint(FOLDER).ensure_id()
        metadata.write(FOLDER, record)
        metadata.write(FOLDER, metadata.QueryMetadata("orders", "id", (), (), (), "update", {}, {}, {}))
        empty_batches.add(FOLDER, "sink", 3)
        inside = metadata.read(FOLDER)

    outside = metadata.read(FOLDER)
    assert outside is not None
    assert outside == inside
    assert (outside.output_mode, Checkpoint(FOLDER).query_id()) == ("update", new_id)
    assert [path.name for path in OWN.glob("record-*.json")] == ["record-1.json"]
    assert empty_batches.read(FOLDER, "sink") == empty_batches.EmptyBatches(3, (3,))
