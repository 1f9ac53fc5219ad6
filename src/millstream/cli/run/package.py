"""`millstream package`: write one archive of a pipeline, for machines without network."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from millstream.cli.messages import print_hint

if TYPE_CHECKING:
    from millstream.deployment.pipeline_package import PipelinePackage


@click.command("package", short_help="Write one archive for deployment: spec, code, jars, package versions.")
@click.option(
    "-f",
    "--file",
    type=click.Path(path_type=Path),
    help="The spec, or its folder. [default: pipeline.yml in this folder or the nearest one above]",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The archive to write. [default: dist/NAME.tar.gz in the folder of the spec]",
)
@click.option(
    "--include",
    multiple=True,
    metavar="PATTERN",
    help="Also add these files from the spec's folder, such as 'data/*.csv'; can be repeated.",
)
@click.option("--json", "as_json", is_flag=True, help="Print, as JSON, what the package contains.")
def command(file: Path | None, output: Path | None, include: tuple[str, ...], *, as_json: bool) -> None:
    """Write one archive with everything that a deployment needs.

    The archive runs with Python, spark-submit, a container or Kubernetes. The machine that runs the archive
    needs Java, and pip installs the Python packages of requirements.lock there; no other download is needed.

    The archive contains the spec, its views and modules, the files that the spec names, Millstream itself,
    the jars, the versions of all Python packages, a Dockerfile and Kubernetes manifests. Variables in the
    spec are not replaced, and .env and other secrets are left out. The same project always gives the same
    archive, byte for byte.
    """
    from millstream.cli.project import exit_on_errors, find_spec
    from millstream.deployment.archive import is_archive, write_archive
    from millstream.deployment.pipeline_package import build_package
    from millstream.diagnostics.failure import MillstreamError, NotReady
    from millstream.pipeline.spec_file import load_spec

    spec = find_spec(file)
    loaded = load_spec(spec, {})
    # Variables get their values where the pipeline runs.
    exit_on_errors([finding for finding in loaded.findings if finding.code != "MS006"], loaded.texts)
    package = build_package(spec, loaded, include)
    archive = output or spec.parent / "dist" / f"{package.name}.tar.gz"
    try:
        if archive.is_file() and not is_archive(archive):
            raise MillstreamError(
                f"{archive} exists and is not a package, so it is not overwritten",
                "name another file with -o",
            )
        write_archive(archive, package.contents)
    except OSError as error:
        raise NotReady(f"{archive} cannot be written: {error.strerror}", "name another with -o") from error
    _report(package, archive, as_json=as_json)


def _report(package: PipelinePackage, archive: Path, *, as_json: bool) -> None:
    import json

    from millstream.pipeline.load.loader import display_path

    variables = [
        reference.name
        for reference in package.variables
        if not reference.is_file and reference.default is None
    ]
    files = [reference.name for reference in package.variables if reference.is_file]
    if as_json:
        description = {
            "archive": str(archive),
            "bytes": archive.stat().st_size,
            "files": sorted(name for name in package.contents if not name.startswith("lib/")),
            "variables": variables,
            "secret_files": files,
            "left_out": dict(package.left_out),
            "local_packages": list(package.local_packages),
            "local_checkpoints": list(package.local_checkpoints),
            "local_sinks": list(package.local_sinks),
        }
        click.echo(json.dumps(description, indent=1))
        return
    project = sum(name.startswith("project/") for name in package.contents)
    jars = sum(name.startswith("jars/") for name in package.contents)
    click.echo(
        f"{display_path(archive)}: {archive.stat().st_size / 1e6:.0f} MB, {project} files of the project, {jars} jars"
    )
    for name, reason in package.left_out.items():
        click.echo(f"left out: {name}, {reason}", err=True)
    for name in package.local_packages:
        click.echo(
            f"warning: {name} was installed from a folder or an address, not from an index; "
            "'pip install -r requirements.lock' may not find it",
            err=True,
        )
    if package.local_checkpoints:
        click.echo(
            f"warning: a container loses the checkpoints in {', '.join(package.local_checkpoints)}, outside of its "
            "volume, so its queries start from scratch: rows are skipped or written twice, and spooled batches are "
            "lost; leave out 'checkpoints' and 'checkpoint', or mount another volume there",
            err=True,
        )
    if package.local_sinks:
        click.echo(
            f"warning: a container loses the data of {', '.join(package.local_sinks)}, outside of its volume; "
            "mount another volume there, or write to an object store",
            err=True,
        )
    if variables or files:
        print_hint(f"needed where it runs: {', '.join([*variables, *files])}")
