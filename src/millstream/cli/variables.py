"""Collect the variables that a spec can use."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from millstream.spec.secrets.env_file import read_env

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def spec_environment(folder: Path, path: Path | None) -> dict[str, str]:
    """Return the variables of a spec.

    Precedence, highest first: the process's environment, the file at `path`, `.env` in the folder, the local stack.
    Raises `InvalidInput` if a file of variables cannot be read.
    """
    env_file = folder / ".env"
    return {
        **_stack(folder),
        **(read_env(env_file) if env_file.is_file() else {}),
        **(read_env(path) if path else {}),
        **os.environ,
    }


def _stack(folder: Path) -> Mapping[str, str]:
    """Return the addresses of the local stack, if one was started for this folder."""
    try:
        if not (folder / ".millstream" / "stack").is_dir():
            return {}
    except PermissionError:
        # It is another user's, whose servers refuse this one too.
        return {}
    from millstream.devstack.stack import environment as running

    return running(folder)
