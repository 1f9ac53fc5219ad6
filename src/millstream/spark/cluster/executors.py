"""Ask the executors of a cluster what they lack: packages, versions, folders that the driver sees, the right time."""

from __future__ import annotations

import contextlib
import os
import platform
import pwd
import re
import socket
import sys
import tempfile
import time
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from millstream.diagnostics.failure import NotReady
from millstream.spark import internals

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark import SparkContext

# A worker starts an executor and fetches the jars within seconds; a loaded machine was seen to take half a minute.
PATIENCE = 90.0
_LOOK = 0.1

# Tasks for each core, so that no executor is left out for one that is quicker.
_TASKS_PER_CORE = 4

# Seconds by which clocks may differ: synchronised ones differ by milliseconds.
_CLOCK_TOLERANCE = 5.0

_OTHER_PYTHON = re.compile(r"PYTHON_VERSION_MISMATCH\]\s*(?P<what>[^\n]+)")
_NO_PYTHON = re.compile(r'Cannot run program "(?P<program>[^"]+)"')


@dataclass(frozen=True)
class Lack:
    """Something that executors need and do not have, and what to do about it."""

    what: str
    fix: str
    is_fatal: bool = True
    """False if a run can do its work all the same."""


@dataclass(frozen=True)
class _Surroundings:
    """What one task found: the versions of packages, the folders that it cannot use, and the time in seconds."""

    host: str
    versions: tuple[tuple[str, str | None], ...]
    unseen: tuple[str, ...]
    readonly: tuple[str, ...]
    clock: float = 0.0
    user: str = ""


def examine_executors(context: SparkContext, packages: Sequence[str], folders: Sequence[Path]) -> list[Lack]:
    """Return what the executors lack of packages and folders, and whose clock is wrong, one sentence each.

    Each folder is looked for by a file that the driver puts into it for that time, or into the nearest folder above
    that exists: a folder of the same name on another disk is not the same folder. Raises NotReady if there is no
    executor within `PATIENCE` seconds.
    """
    _await_executor(context)
    own = {name: _version(name) for name in packages}
    with contextlib.ExitStack() as stack:
        files = {str(folder): str(stack.enter_context(_put_marker(folder))) for folder in folders}
        look = partial(_look, packages=tuple(packages), markers=files)
        count = context.defaultParallelism * _TASKS_PER_CORE
        began = time.time()
        try:
            reports: list[_Surroundings] = (
                context.parallelize(range(count), count).mapPartitions(look).collect()
            )
        except Exception as error:
            # The job fails with Py4J's error of whatever the executors could not do.
            if lack := _explain(str(error)):
                return [lack]
            raise
    lacks = [lack for surroundings in reports for lack in _lacks(surroundings, own)]
    return list(dict.fromkeys([*lacks, *_clock_lacks(reports, began, time.time())]))


def _await_executor(context: SparkContext) -> None:
    deadline = time.monotonic() + PATIENCE
    master = context.master
    while not internals.count_executors(context):
        if internals.is_stopped(context):
            raise NotReady(
                f"the cluster {master} ended this application: its executors did not start",
                "see the logs of its workers, for a local one by 'millstream logs spark-worker-1'",
            )
        if time.monotonic() > deadline:
            conf = context.getConf()
            cores, heap = conf.get("spark.executor.cores", "all"), conf.get("spark.executor.memory", "1g")
            raise NotReady(
                f"no executor of the cluster {master} was ready within {PATIENCE:.0f} s",
                f"each executor needs a worker with {cores} free cores and {heap} of free memory: stop another"
                " application, add a worker, or lower spark.executor.cores and spark.executor.memory; on a loaded"
                " machine, start it again",
            )
        # There is no notification when an executor registers, so poll.
        time.sleep(_LOOK)


def _look(_: object, packages: Sequence[str], markers: Mapping[str, str]) -> Iterator[_Surroundings]:
    """Look around, in a task."""
    unseen, readonly = [], []
    for folder, file in markers.items():
        try:
            if not Path(file).exists():
                unseen.append(folder)
            elif not os.access(Path(file).parent, os.W_OK):
                readonly.append(folder)
        except OSError:
            # A folder that is closed to the user of the worker.
            readonly.append(folder)
    yield _Surroundings(
        socket.gethostname(),
        tuple((name, _version(name)) for name in packages),
        tuple(unseen),
        tuple(readonly),
        time.time(),
        _find_user(),
    )


def _lacks(surroundings: _Surroundings, own: Mapping[str, str | None]) -> Iterator[Lack]:
    for name, version in surroundings.versions:
        if version is None:
            yield Lack(
                f"the Python of the executor on {surroundings.host} has no package {name}",
                f"install {name} {own[name]} there, or set spark.pyspark.python to a Python that has it",
            )
        elif version != own[name]:
            yield Lack(
                f"the executor on {surroundings.host} has {name} {version}, and this machine {own[name]}",
                "install the same version on both",
            )
    for folder in surroundings.unseen:
        yield Lack(
            f"the executor on {surroundings.host} does not see {folder} of this machine",
            "name a folder that all machines of the cluster mount, under the same path on each",
        )
    for folder in surroundings.readonly:
        yield Lack(
            f"the executor on {surroundings.host}, which runs as user '{surroundings.user}', may not write {folder}",
            f"run the workers as user '{_find_user()}', since a run closes its checkpoints to other users, and mount "
            "the folder so that this user may write it there",
        )


def _clock_lacks(reports: Sequence[_Surroundings], began: float, ended: float) -> Iterator[Lack]:
    """Yield the hosts on which a task ran earlier or later, by their own clocks, than the job by the driver's."""
    for host in dict.fromkeys(report.host for report in reports):
        clocks = [report.clock for report in reports if report.host == host]
        for seconds, direction in ((max(clocks) - ended, "ahead of"), (began - min(clocks), "behind")):
            if seconds > _CLOCK_TOLERANCE:
                yield Lack(
                    f"the clock of the executor on {host} is at least {seconds:.0f} s {direction} this machine's",
                    "synchronise the clocks of all machines, for example with chrony",
                    is_fatal=False,
                )


def _explain(error: str) -> Lack | None:
    """Return what a failed job says about the Python of an executor."""
    fix = f"set spark.pyspark.python to the path of a Python {platform.python_version()} on the workers"
    if match := _OTHER_PYTHON.search(error):
        return Lack(f"executors have another Python than this machine: {match['what'].strip()}", fix)
    if match := _NO_PYTHON.search(error):
        return Lack(f"executors cannot start the Python {match['program']}", fix)
    return None


@contextlib.contextmanager
def _put_marker(folder: Path) -> Iterator[Path]:
    """Put an empty file, which tables' readers skip, into the folder or the nearest one above that exists."""
    existing = next(path for path in (folder, *folder.parents) if path.is_dir())
    descriptor, name = tempfile.mkstemp(prefix=".millstream-", dir=existing)
    os.close(descriptor)
    try:
        yield Path(name)
    finally:
        Path(name).unlink(missing_ok=True)


def _find_user() -> str:
    """Return the name of the user of this process, or its number."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        # A package that is there without its metadata serves as well.
        module: Any = sys.modules.get(package)
        return getattr(module, "__version__", None)
