"""A store that does not enforce conditional writes may have no checkpoint."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from millstream.checkpoint.lock import CheckpointLock
from millstream.checkpoint.remote import store_check
from millstream.checkpoint.remote.file_system import set_file_system
from millstream.checkpoint.remote.path import RemotePath
from millstream.diagnostics.failure import NotReady
from remote_files import MemoryObjectStore

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = "s3a://bucket/checkpoints/orders"
FOLDER = RemotePath(ROOT)


@pytest.fixture
def store() -> Iterator[MemoryObjectStore]:
    system = MemoryObjectStore()
    set_file_system(system)
    store_check._checked.clear()
    yield system
    set_file_system(None)


def test_a_store_that_ignores_conditions_is_refused_and_left_as_it_was(store: MemoryObjectStore) -> None:
    store.honours_conditions = False

    with pytest.raises(NotReady, match="it created an object twice, so a run cannot lock a checkpoint there"):
        CheckpointLock(FOLDER, "shop.orders").take()

    assert not store.files


def test_a_store_that_replaces_a_changed_object_is_refused(store: MemoryObjectStore) -> None:
    store.replace = lambda uri, content, _: store.write(uri, content)  # type: ignore[method-assign]

    with pytest.raises(NotReady, match="it replaced an object that had changed"):
        CheckpointLock(FOLDER, "shop.orders").take()

    assert not store.files


def test_a_store_that_replaces_no_object_is_refused(store: MemoryObjectStore) -> None:
    def refuse(uri: str, *_: object) -> None:
        raise FileExistsError(uri)

    store.replace = refuse  # type: ignore[method-assign]
    with pytest.raises(NotReady, match="it refused to replace an object that had not changed"):
        CheckpointLock(FOLDER, "shop.orders").take()

    assert not store.files


def test_a_store_whose_responses_were_lost_is_not_refused(store: MemoryObjectStore) -> None:
    create, replace = store.create, store.replace

    def create_twice(uri: str, content: bytes) -> None:
        create(uri, content)
        create(uri, content)

    def replace_twice(uri: str, content: bytes, tag: str) -> None:
        replace(uri, content, tag)
        replace(uri, content, tag)

    store.create, store.replace = create_twice, replace_twice  # type: ignore[method-assign]

    store_check.require_conditional_writes(ROOT)

    assert not store.files
