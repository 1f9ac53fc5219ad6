"""What a run keeps for itself is for its owner alone; what it writes for others is as open as the umask says."""

from __future__ import annotations

import os
import stat
from contextlib import ExitStack
from typing import TYPE_CHECKING

from millstream.engine.run import RunOptions, choose_queries, lock_checkpoints

if TYPE_CHECKING:
    from pathlib import Path

    from spark.conftest import Project

A = {"id": "a", "amount": 3, "at": "2026-01-01T12:01:00Z"}


def is_reachable(file: Path, root: Path) -> bool:
    """May another user of the machine open a file below `root`?"""
    folders = [above for above in file.parents if above.is_relative_to(root)]
    return bool(file.stat().st_mode & stat.S_IROTH) and all(
        path.stat().st_mode & stat.S_IXOTH for path in folders
    )


def test_checkpoints_and_dead_letters_are_closed_and_tables_are_not(project: Project) -> None:
    inherited = os.umask(0o022)
    os.umask(inherited)
    assert inherited == 0o022, "Spark's JVM has the umask of this process"
    project.folder.chmod(0o755)
    checkpoints = project.folder / "ck"
    checkpoints.mkdir(mode=0o755)
    project.add_lines(A, "{broken")
    pipeline = project.pipeline(defaults={"checkpoints": str(checkpoints)})

    with ExitStack() as exit_stack:
        lock_checkpoints(pipeline, choose_queries(pipeline, RunOptions()), exit_stack)
        assert project.run(pipeline)

    paths = [file for file in checkpoints.rglob("*") if file.is_file()]
    assert {"metadata", "record.json", "lock"} <= {file.name for file in paths}
    assert any("_dead_letters" in file.parts for file in paths)
    assert [file for file in paths if is_reachable(file, project.folder)] == []
    for table in ("sums", "table", "files"):
        data = [
            file for file in (project.folder / table).rglob("*.parquet") if "_millstream" not in file.parts
        ]
        assert data
        assert all(is_reachable(file, project.folder) for file in data)
