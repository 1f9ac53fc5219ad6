"""`millstream migrate`: write a project for a PySpark script."""

from __future__ import annotations

from pathlib import Path

import click

from millstream.cli.check.check import print_progress
from millstream.cli.project import load_project
from millstream.diagnostics.failure import InvalidInput


@click.command(
    "migrate",
    context_settings={"ignore_unknown_options": True},
    short_help="Write a project for a PySpark script.",
)
@click.argument("script", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="Folder to create. Default: the script's name."
)
def command(script: Path, arguments: tuple[str, ...], output: Path | None) -> int:
    """Write a project for a PySpark script: a spec, the code of its views, and MIGRATION.md.

    The script runs as in 'millstream check' and is not changed. Sources, sinks, output modes and triggers become a
    spec. The statements that build the table of a query become a view in transforms.py. MIGRATION.md lists what was
    moved, what the project does in another way, and what was not moved, with lines. Words after the script are its
    arguments.

    Exits with 0 if at least one query was moved, and with 5 if none was.
    """
    from millstream.checking.batch_check import NOTHING_JUDGED, Checker

    if script.suffix != ".py":
        raise InvalidInput(f"{script} is not a Python script", "name a .py file")
    folder = output or Path(script.stem)
    if folder.exists() and any(folder.iterdir()):
        raise InvalidInput(f"the folder {folder} is not empty", "choose another one with -o")
    folder.mkdir(parents=True, exist_ok=True)
    with Checker(load=load_project, say=print_progress, confines=True, writable=(folder,)) as checker:
        from millstream.checking.scripts.migration.migrate import migrate_script

        project = migrate_script(checker.spark(), script, arguments)
    print_progress("")
    for name, text in project.files.items():
        (folder / name).write_text(text, encoding="utf-8")
        click.echo(f"wrote {folder / name}")
    for reason in project.left:
        click.echo(f"not moved: {reason}", err=True)
    if not project.moved:
        return NOTHING_JUDGED
    click.echo(f"next: millstream check -f {folder / 'pipeline.yml'}", err=True)
    return 0
