"""Which variables a spec sees, and where each comes from."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from millstream.spec.envfile import read_env

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def environment(folder: Path, given: Path | None) -> dict[str, str]:
    """The process's variables over those of `given`, over `.env` in the folder, over the local stack's.

    Raises `WrongUse` when a file of variables cannot be read.
    """
    beside = folder / ".env"
    return {
        **_stack(folder),
        **(read_env(beside) if beside.is_file() else {}),
        **(read_env(given) if given else {}),
        **os.environ,
    }


def _stack(folder: Path) -> Mapping[str, str]:
    """The addresses of the local stack, when one was started for this folder."""
    if not (folder / ".millstream" / "stack").is_dir():
        return {}
    from millstream.devstack.stack import environment as running

    return running(folder)
