"""`millstream init`: a project of your own, copied from the starter or from an example."""

from __future__ import annotations

import shutil
from pathlib import Path

import click

import millstream
from millstream.cli.schema import write_schema
from millstream.diagnostics.failure import WrongUse

DEFAULT = "starter"
# What a run leaves behind is no part of a project.
_LEFT_BEHIND = (".millstream", "lake", "__pycache__", "spark-warehouse", ".env", ".ipynb_checkpoints")


def examples_folder() -> Path:
    """Where the examples lie: in the installed package, or in the checkout it was installed from."""
    package = Path(millstream.__file__).parent
    inside = package / "examples"
    return inside if inside.is_dir() else package.parents[1] / "examples"


def example_names() -> list[str]:
    """The examples there are, by name."""
    return sorted(
        folder.name for folder in examples_folder().iterdir() if (folder / "pipeline.yml").is_file()
    )


def copy_example(name: str, into: Path) -> None:
    """Copy an example's files. Raises `WrongUse` for an unknown name or a folder that has a pipeline."""
    names = example_names()
    if name not in names:
        raise WrongUse(f"there is no example '{name}'", f"the examples are {', '.join(names)}")
    if (into / "pipeline.yml").exists():
        raise WrongUse(f"{into} has a pipeline.yml already", "name another folder")
    shutil.copytree(
        examples_folder() / name, into, dirs_exist_ok=True, ignore=shutil.ignore_patterns(*_LEFT_BEHIND)
    )


@click.command("init", short_help="Start a project from a template or an example.")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), default=Path())
@click.option("--from", "name", metavar="EXAMPLE", default=DEFAULT, show_default=True, help="What to copy.")
@click.option("--list", "listed", is_flag=True, help="List what can be copied.")
def command(folder: Path, name: str, *, listed: bool) -> None:
    """Make FOLDER a project that runs as it is: pipeline.yml, its views and data, and an editor's schema."""
    if listed:
        for known in example_names():
            click.echo(known)
        return
    copy_example(name, folder)
    write_schema(folder)
    where = "" if folder == Path() else f"cd {folder} && "
    click.echo(f"{folder / 'pipeline.yml'} is ready; next: {where}millstream check", err=True)
