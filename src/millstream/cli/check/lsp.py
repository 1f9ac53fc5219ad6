"""`millstream lsp`: show findings and quick fixes in an editor."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from millstream.diagnostics.failure import NotReady


@click.command("lsp", short_help="Show findings in an editor, by the Language Server Protocol.")
@click.option("--no-spark", is_flag=True, help="Never start Spark: only the checks that need none.")
def command(*, no_spark: bool) -> int:
    """Serve an editor by the Language Server Protocol, on stdin and stdout.

    Findings appear while a spec or a test file is edited. When it is saved, Spark checks it too, and so it does
    with PySpark scripts. Fixes are offered as quick fixes, and hovering over a finding shows its page.

    An editor starts this command. Needs the extra `lsp`: pip install 'millstream[lsp]'.
    """
    try:
        from millstream.language_server.server import create_server
    except ModuleNotFoundError as error:
        if error.name not in ("pygls", "lsprotocol"):
            raise
        raise NotReady(
            "the package pygls is not installed", "install it: pip install 'millstream[lsp]'"
        ) from error
    from millstream.cli.variables import spec_environment
    from millstream.language_server.spark_check import SparkCheck

    # Nothing but the protocol may be written to stdout, not even by a pipeline's own code.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    server = create_server(
        lambda folder: spec_environment(folder, None), None if no_spark else SparkCheck(Path.cwd())
    )
    server.start_io(sys.stdin.buffer, answers)
    return 0
