"""OpenLineage names of the data that is read and written, so that lineage from several programs connects."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import urlsplit


class LineageDataset(NamedTuple):
    """A dataset by OpenLineage's conventions (its spec/Naming.md): its location, and its name there."""

    namespace: str
    name: str


def dataset_of_folder(place: str) -> LineageDataset:
    """Name a folder: `file` with its absolute path, or scheme and host with the path there.

    Credentials in an address are removed. Keys of object stores begin without a slash.
    """
    parts = urlsplit(place)
    if not parts.scheme or parts.scheme == "file":
        return LineageDataset(
            "file", "/" + parts.path.strip("/") if parts.scheme else place.rstrip("/") or "/"
        )
    host = parts.netloc.rpartition("@")[2]
    has_keys = parts.scheme in ("s3", "s3a", "s3n", "gs", "wasb", "wasbs")
    # Hadoop's schemes for S3 all mean `s3`, which lineage readers expect.
    scheme = "s3" if parts.scheme.startswith("s3") else parts.scheme
    if parts.scheme.startswith(("abfs", "wasb")):
        # The part before the @ is a container, not credentials.
        host = parts.netloc
    path = parts.path.rstrip("/")
    return LineageDataset(f"{scheme}://{host}", (path.lstrip("/") if has_keys else path) or "/")
