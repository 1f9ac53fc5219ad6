"""`millstream prove`: kill a copy of the pipeline again and again, and compare its sinks with a batch run."""

from __future__ import annotations

import fcntl
import json
import random
import shutil
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from millstream.cli.driving import WHAT, Project, drive
from millstream.cli.environment import environment
from millstream.cli.project import find_spec, project_options
from millstream.cli.steps import Steps
from millstream.diagnostics.failure import CannotGoOn, NotReady

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millstream.connectors.source import Need
    from millstream.devstack.state import Endpoints
    from millstream.pipeline.model import Pipeline
    from millstream.proof.report import Report


@dataclass(frozen=True)
class Asked:
    """What was typed, beside the project."""

    queries: tuple[str, ...]
    kills: int
    seed: int | None
    rows: int
    point: str | None
    wanted: str | None
    report: Path | None
    keep: bool


@click.command("prove", short_help="Kill the pipeline, and compare its sinks with a batch run.")
@click.argument("queries", nargs=-1, metavar="[QUERY]…")
@project_options
@click.option(
    "--kills", type=click.IntRange(1), default=20, show_default=True, help="How often it is killed."
)
@click.option("--seed", type=int, help="Draws input and kills as a proof before did. [default: a fresh one]")
@click.option(
    "--rows", type=click.IntRange(1), default=20_000, show_default=True, help="About so many rows are fed."
)
@click.option("--point", metavar="POINT", help="Kill at this point only, such as batch.delivered.")
@click.option(
    "--faults", "wanted", metavar="NAMES", help="Also let these happen, with commas between; all: every one."
)
@click.option("--json", "report", type=click.Path(path_type=Path), help="Write the report there, as JSON.")
@click.option("--keep", is_flag=True, help="Leave topics and tables of the proof in place.")
@click.option("--driver", type=click.Path(path_type=Path), hidden=True, help="Run the copy in this folder.")
def command(
    *,
    file: Path | None,
    overrides: tuple[str, ...],
    env_file: Path | None,
    driver: Path | None,
    **asked: Any,
) -> int:
    """Kill a copy of the pipeline again and again, and compare every sink with a batch run of the same spec.

    The copy has checkpoints, topics, tables and folders of its own; nothing of the pipeline's is touched. It is
    fed with what traffic.yml declares, or with rows drawn from the schemas. Ends with 0 when every sink holds
    what it was promised, else with 1; the same --seed draws the same input and the same kills.
    """
    project = Project(find_spec(file).resolve(), overrides, env_file)
    return _prove(project, Asked(**asked)) if driver is None else drive(driver, project)


def _prove(project: Project, asked: Asked) -> int:
    """Make the copy, prove it, tell what was found, and tidy up."""
    seed = random.SystemRandom().randrange(1, 1_000_000) if asked.seed is None else asked.seed
    folder = project.spec.parent / ".millstream" / "proof" / str(seed)
    with ExitStack() as held:
        _alone(folder, held)
        found = _proven(project, asked, seed, folder, held)
    _show(found)
    if asked.report is not None:
        asked.report.write_text(json.dumps(found.to_json(), indent=2) + "\n")
    if not found.fine:
        click.echo(f"what it left is in {folder}; next: millstream prove --seed {seed} --keep", err=True)
    else:
        shutil.rmtree(folder, ignore_errors=True)
    return 0 if found.fine else 1


def _alone(folder: Path, held: ExitStack) -> None:
    """Empty the folder, once no other proof is at work in it. Raises `CannotGoOn`."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    lock = held.enter_context((folder.parent / f"{folder.name}.lock").open("w"))
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as other:
        raise CannotGoOn(
            f"another proof with seed {folder.name} runs in {folder}", "wait for it, or give another --seed"
        ) from other
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()


def _proven(project: Project, asked: Asked, seed: int, folder: Path, held: ExitStack) -> Report:
    """The report of a proof in that folder. `held` keeps servers and what is to be removed afterwards."""
    # Here and not above: `millstream --help` and a driver need none of it.
    from millstream.cli.faults import Stage, chosen, faults
    from millstream.cli.recorded import recorded
    from millstream.devstack import stack
    from millstream.proof.aims import points
    from millstream.proof.full_disk import small_disk
    from millstream.proof.prove import Wish, discard, prove

    steps, home = Steps(), project.spec.parent
    held.callback(steps.done)
    disk = asked.wanted is not None and bool({"all", "disk-full"} & set(asked.wanted.split(",")))
    small = disk and held.enter_context(small_disk(folder))
    # Of two proofs with one seed each has its own topics and tables.
    what = {"prefix": f"proof_{seed}_{int(time.time()):x}", "queries": list(asked.queries)}
    (folder / WHAT).write_text(json.dumps(what))
    original, copy = project.copied(folder)
    if asked.point is not None and asked.point not in points(copy.pipeline):
        raise click.UsageError(f"--point: choose among {', '.join(points(copy.pipeline))}")
    if servers := _servers(copy.pipeline):
        before = stack.environment(home)
        if not before:
            held.callback(stack.down, home)
        there = stack.up(home, (), steps.tell, attached=not before, servers=servers)
        # Once more, with the addresses of the servers: only now it is known where the copy's topics would stand.
        original, copy = project.copied(folder)
        needs = _needs(copy.pipeline)
        _on_the_stack(needs, there)
        stack.up(home, needs, steps.tell, servers=servers)
    stage = Stage(home, servers, points(copy.pipeline), folder, small=small)
    wanted, notes = chosen(faults(stage), asked.wanted, stage)
    wish = Wish(
        kills=asked.kills,
        seed=seed,
        rows=asked.rows,
        command=project.driver(folder),
        env=environment(home, project.env_file),
        folder=folder,
        point=asked.point,
        faults=wanted,
    )
    if not asked.keep:
        held.callback(discard, copy.pipeline)
    found = prove(original, copy, wish, steps.tell, recorded(home, wish.portions, asked.rows, seed))
    found.notes = (*found.notes, *notes)
    return found


def _servers(pipeline: Pipeline) -> tuple[str, ...]:
    """The servers of the local stack that the copy needs."""
    kinds = [entry.source.server for entry in pipeline.sources.values()]
    kinds += [entry.sink.server for query in pipeline.queries.values() for entry in query.to]
    return tuple(sorted({server for server in kinds if server}))


def _needs(pipeline: Pipeline) -> list[Need]:
    """The topics that the copy needs."""
    found = [need for entry in pipeline.sources.values() for need in entry.source.needs()]
    sinks = [entry.sink for query in pipeline.queries.values() for entry in query.to]
    return found + [need for sink in sinks for need in sink.needs()]


def _on_the_stack(needs: Sequence[Need], there: Endpoints) -> None:
    """Raises `NotReady` where the copy's topics would stand on a broker that nobody gave to the stack."""
    for need in needs:
        ours = getattr(there, need.system)
        if need.at and _same(need.at) != _same(ours):
            raise NotReady(
                f"the proof's {need.what} '{need.name}' would stand on the server at {need.at}, which the spec or a "
                f"variable names, and not on the local stack's at {ours}",
                f"unset the variable, or let {need.what}s be made there: millstream up --{need.system} {need.at}",
            )


def _same(addresses: str) -> set[str]:
    """Addresses without regard to their order, and to this machine's two names."""
    return {one.strip().replace("localhost:", "127.0.0.1:") for one in addresses.split(",")}


def _show(found: Report) -> None:
    """The tables to stdout, what is wrong with its keys, and the figures."""
    from millstream.cli.table import table

    click.echo(table(*found.kills()))
    click.echo(table(*found.sinks()))
    for remark in found.remarks():
        click.echo(remark)
    click.echo(found.story())
