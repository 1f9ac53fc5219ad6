"""Facts about folders of files that the rest of the package reads through the registry."""

from __future__ import annotations

from millstream.connectors.api.system import System

FILES = System(
    failpoints={
        "files.staged": "its files are written where readers do not look",
        "files.committed": "its manifest exists and no file is in its place, or its folder is in its place",
        "files.published": "every file is in its place, and the run has no confirmation yet",
    },
    undecided="files.staged",
)
