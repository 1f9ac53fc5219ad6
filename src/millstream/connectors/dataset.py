"""The names that OpenLineage gives to what is read and written, so that lineage of several programs meets."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import urlsplit


class Dataset(NamedTuple):
    """A data set by OpenLineage's conventions (its spec/Naming.md): where it is, and its name there."""

    namespace: str
    name: str


def of_place(place: str) -> Dataset:
    """A folder: `file` with the whole path, or the scheme and host of another file system with the path there.

    Credentials that an address carries are left out. Object stores have keys, which begin without a slash.
    """
    parts = urlsplit(place)
    if not parts.scheme or parts.scheme == "file":
        return Dataset("file", "/" + parts.path.strip("/") if parts.scheme else place.rstrip("/") or "/")
    host = parts.netloc.rpartition("@")[2]
    keyed = parts.scheme in ("s3", "s3a", "s3n", "gs", "wasb", "wasbs")
    # Hadoop's names of one store are one store: readers look for `s3`.
    scheme = "s3" if parts.scheme.startswith("s3") else parts.scheme
    if parts.scheme.startswith(("abfs", "wasb")):
        # A container before the @, which is no credential.
        host = parts.netloc
    path = parts.path.rstrip("/")
    return Dataset(f"{scheme}://{host}", (path.lstrip("/") if keyed else path) or "/")
