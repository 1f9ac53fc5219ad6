"""The folder of a benchmark and of its local servers, which goes with them unless a person wants to look at it."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.devstack import stack

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def scratch_folder(name: str, *, keep: bool = False) -> Iterator[Path]:
    """Give a new folder. At the end its servers are stopped, and it is removed or, with `keep`, named."""
    folder = Path(tempfile.mkdtemp(prefix=f"millstream-{name}-"))
    try:
        yield folder
    finally:
        stack.down(folder)
        if keep:
            print(f"kept: {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)
