"""`millstream prove`: kill a copy of the pipeline repeatedly, and compare its sinks with a batch run."""

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

from millstream.checkpoint.private_folder import make_private
from millstream.cli.messages import print_hint
from millstream.cli.progress import ProgressReporter
from millstream.cli.project import find_spec, project_options
from millstream.cli.prove.driver import WHAT, ProveProject, run_driver
from millstream.cli.variables import spec_environment
from millstream.diagnostics.failure import CheckpointError, InvalidInput, NotReady

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millstream.connectors.api.values.problem import RequiredResource
    from millstream.devstack.supervisor.state import Endpoints
    from millstream.pipeline.model import Pipeline
    from millstream.proof.report import ProofReport


@dataclass(frozen=True)
class ProveArguments:
    """The options of the command, except those of the project."""

    queries: tuple[str, ...]
    kills: int
    seed: int | None
    rows: int
    point: str | None
    faults: str | None
    backfill: bool
    report: Path | None
    keep: bool


@click.command("prove", short_help="Test the delivery guarantees by killing a copy of the pipeline.")
@click.argument("queries", nargs=-1, metavar="[QUERY]...")
@project_options
@click.option(
    "--kills",
    type=click.IntRange(1),
    default=20,
    show_default=True,
    help="How many times the pipeline is killed.",
)
@click.option(
    "--seed",
    type=int,
    help="Random seed; the same seed repeats the input and the kills of a proof. [default: random]",
)
@click.option(
    "--rows",
    type=click.IntRange(1),
    default=20_000,
    show_default=True,
    help="Approximate number of input rows.",
)
@click.option(
    "--point",
    metavar="POINT",
    help="Kill only when a batch reaches this point, such as batch.delivered (every sink has the batch, and "
    "Spark has not committed it). An unknown name prints all points.",
)
@click.option(
    "--faults",
    metavar="NAMES",
    help="In addition to the kills, cause these faults, separated by commas, such as kafka-stop (the broker is "
    "down). 'all' causes every fault; an unknown name prints all faults.",
)
@click.option(
    "--backfill",
    is_flag=True,
    help="Also test 'millstream backfill': delete rows of past time ranges from the sinks, and restore them.",
)
@click.option(
    "--json", "report", type=click.Path(path_type=Path), help="Write the report as JSON to this file."
)
@click.option("--keep", is_flag=True, help="Do not delete the topics and tables of the copy at the end.")
@click.option("--driver", type=click.Path(path_type=Path), hidden=True, help="Run the copy in this folder.")
def command(
    *,
    file: Path | None,
    overrides: tuple[str, ...],
    env_file: Path | None,
    driver: Path | None,
    **arguments: Any,
) -> int:
    """Test the delivery guarantees: kill a copy of the pipeline repeatedly, and compare its sinks with a batch run.

    The copy uses its own checkpoints, topics, tables and folders; those of the pipeline are not touched. Its
    input is the traffic that traffic.yml declares or, without that file, random rows that match the schemas
    of the sources. Exits with 0 if every sink kept its delivery guarantee, else with 1. With the same --seed,
    the input and the kills are the same.
    """
    project = ProveProject(find_spec(file).resolve(), overrides, env_file)
    return _prove(project, ProveArguments(**arguments)) if driver is None else run_driver(driver, project)


def _prove(project: ProveProject, arguments: ProveArguments) -> int:
    """Create the copy, run the proof, print the report, and clean up."""
    if arguments.report is not None:
        _prepare_report(arguments.report)
    seed = random.SystemRandom().randrange(1, 1_000_000) if arguments.seed is None else arguments.seed
    folder = project.spec.parent / ".millstream" / "proof" / str(seed)
    with ExitStack() as stack:
        _alone(folder, stack)
        report = _proven(project, arguments, seed, folder, stack)
    _show(report)
    if not report.is_equal:
        click.echo(f"the files of the proof are in {folder}", err=True)
        print_hint(f"next: millstream prove --seed {seed} --keep")
    if arguments.report is not None:
        try:
            arguments.report.write_text(json.dumps(report.to_json(), indent=2) + "\n")
        except OSError as error:
            raise _unwritable(arguments.report, error) from error
    if report.is_equal:
        shutil.rmtree(folder, ignore_errors=True)
    return 0 if report.is_equal else 1


def _prepare_report(report: Path) -> None:
    """Create the folder of the report, and open its file, before the proof, which takes long.

    Raises `InvalidInput` if the report cannot be written.
    """
    if report.is_dir():
        raise InvalidInput(f"--json: {report} is a folder", "name a file")
    try:
        report.parent.mkdir(parents=True, exist_ok=True)
        if report.is_file():
            report.open("a").close()
        elif not report.exists() and not report.is_symlink():
            report.touch()
            report.unlink()
    except OSError as error:
        raise _unwritable(report, error) from error


def _unwritable(report: Path, error: OSError) -> InvalidInput:
    return InvalidInput(f"{report} cannot be written: {error.strerror}", "choose another file with --json")


def _alone(folder: Path, stack: ExitStack) -> None:
    """Lock and empty the folder. Raises `CheckpointError` if another proof is using it."""
    make_private(folder.parent)
    lock = stack.enter_context((folder.parent / f"{folder.name}.lock").open("w"))
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise CheckpointError(
            f"another proof with seed {folder.name} is running in {folder}",
            "wait for it, or use another --seed",
        ) from error
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()


def _proven(
    project: ProveProject, arguments: ProveArguments, seed: int, folder: Path, cleanup: ExitStack
) -> ProofReport:
    """Run the proof in that folder and return its report. `cleanup` stops servers and deletes data at the end."""
    # Imported here because `millstream --help` and a driver need none of these modules.
    from millstream.cli.prove.faults import FaultContext, choose_faults, possible_faults
    from millstream.cli.prove.recorded_traffic import read_recorded_traffic
    from millstream.devstack import stack
    from millstream.proof.full_disk import mount_small_disk
    from millstream.proof.kill_plan import list_failpoints
    from millstream.proof.prove import ProofOptions, discard_sandbox, prove

    steps, project_folder = ProgressReporter(), project.spec.parent
    cleanup.callback(steps.clear)
    needs_disk = arguments.faults is not None and bool(
        {"all", "disk-full"} & set(arguments.faults.split(","))
    )
    small = needs_disk and cleanup.enter_context(mount_small_disk(folder))
    # The time is in the prefix so that two proofs with the same seed use different topics and tables.
    settings = {"prefix": f"proof_{seed}_{int(time.time()):x}", "queries": list(arguments.queries)}
    (folder / WHAT).write_text(json.dumps(settings))
    original, copy = project.copied(folder)
    if arguments.point is not None and arguments.point not in list_failpoints(copy.pipeline):
        raise click.UsageError(f"--point: choose from {', '.join(list_failpoints(copy.pipeline))}")
    if servers := _servers(copy.pipeline):
        running = stack.environment(project_folder)
        if not running:
            cleanup.callback(stack.down, project_folder)
        endpoints = stack.up(project_folder, (), steps.show, attached=not running, servers=servers)
        # Copied again, because the addresses of the servers decide where the copy's topics are created.
        original, copy = project.copied(folder)
        needs = _needs(copy.pipeline)
        _on_the_stack(needs, endpoints)
        stack.up(project_folder, needs, steps.show, servers=servers)
    context = FaultContext(project_folder, servers, list_failpoints(copy.pipeline), folder, is_small=small)
    chosen_faults, notes = choose_faults(possible_faults(context), arguments.faults, context)
    options = ProofOptions(
        kills=arguments.kills,
        seed=seed,
        rows=arguments.rows,
        command=project.driver(folder),
        env=spec_environment(project_folder, project.env_file),
        folder=folder,
        point=arguments.point,
        faults=chosen_faults,
        backfill=arguments.backfill,
    )
    if not arguments.keep:
        cleanup.callback(discard_sandbox, copy.pipeline)
    report = prove(
        original,
        copy,
        options,
        steps.show,
        read_recorded_traffic(project_folder, options.portions, arguments.rows, seed),
    )
    report.notes = (*report.notes, *notes)
    return report


def _servers(pipeline: Pipeline) -> tuple[str, ...]:
    """Return the servers of the local stack that the copy needs."""
    kinds = [entry.source.server for entry in pipeline.sources.values()]
    kinds += [entry.sink.server for query in pipeline.queries.values() for entry in query.to]
    return tuple(sorted({server for server in kinds if server}))


def _needs(pipeline: Pipeline) -> list[RequiredResource]:
    """Return the topics that the copy needs."""
    needs = [need for entry in pipeline.sources.values() for need in entry.source.needs()]
    sinks = [entry.sink for query in pipeline.queries.values() for entry in query.to]
    return needs + [need for sink in sinks for need in sink.needs()]


def _on_the_stack(needs: Sequence[RequiredResource], endpoints: Endpoints) -> None:
    """Raise `NotReady` if the copy's topics would be created on a server outside the local stack."""
    for need in needs:
        local = getattr(endpoints, need.system)
        if need.at and _same(need.at) != _same(local):
            raise NotReady(
                f"the proof's {need.what} '{need.name}' would be created on the server at {need.at}, which the spec "
                f"or a variable names, and not on the local stack's server at {local}",
                f"unset the variable, or allow {need.what}s there: millstream up --{need.system} {need.at}",
            )


def _same(addresses: str) -> set[str]:
    """Return the set of addresses, with `localhost` and 127.0.0.1 as equal."""
    return {address.strip().replace("localhost:", "127.0.0.1:") for address in addresses.split(",")}


def _show(report: ProofReport) -> None:
    """Print the tables, the remarks on keys, and the figures to stdout."""
    from millstream.cli.table import format_table

    click.echo(format_table(*report.kills()))
    click.echo(format_table(*report.sinks()))
    for remark in report.remarks():
        click.echo(remark)
    click.echo(report.story())
