"""Find out whether an object store refuses a conditional write, without which no lease of a checkpoint holds."""

from __future__ import annotations

import re
import uuid
from contextlib import suppress

from millstream.checkpoint.remote.file_system import file_system
from millstream.diagnostics.failure import NotReady

# The answer of stores that know of no conditions.
_NOT_IMPLEMENTED = re.compile(r"NotImplemented|Status Code: 501")

_checked: set[str] = set()


def require_conditional_writes(place: str) -> None:
    """Raise `NotReady` if the store of a place creates an object that exists, or replaces one that has changed.

    Writes an object there and deletes it, once a process for each bucket. Raises `OSError` if it does not answer.
    """
    bucket = "/".join(place.split("/")[:3])
    if bucket in _checked:
        return
    probe = f"{place}/_millstream-probe-{uuid.uuid4().hex}"
    try:
        lack = _find_lack(probe)
    finally:
        with suppress(OSError):
            file_system().delete(probe)
    if lack:
        raise NotReady(
            f"the object store of {bucket} does not support conditional writes: {lack}, so a run cannot lock a "
            f"checkpoint there",
            "keep checkpoints in a local or mounted folder or on hdfs://, or use a store that honours If-None-Match "
            "and If-Match, as Amazon's S3 does",
        )
    _checked.add(bucket)


def _find_lack(probe: str) -> str | None:
    """Return what the store accepts that it must refuse, or None."""
    try:
        file_system().create(probe, b"first")
    except FileExistsError:
        # The client repeats a request whose response was lost, and then finds its own object.
        pass
    except OSError as error:
        if _NOT_IMPLEMENTED.search(str(error)):
            return "it does not implement the request"
        raise
    former_tag, _ = file_system().read_tagged(probe)
    try:
        file_system().create(probe, b"second")
    except FileExistsError:
        pass
    else:
        return "it created an object twice"
    with suppress(FileExistsError):
        file_system().replace(probe, b"third", former_tag)
    if file_system().read(probe) != b"third":
        return "it refused to replace an object that had not changed"
    try:
        file_system().replace(probe, b"fourth", former_tag)
    except FileExistsError:
        return None
    return "it replaced an object that had changed"
