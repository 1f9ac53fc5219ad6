"""`millstream lsp`: show findings and quick fixes in an editor."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from millstream.diagnostics.failure import NotReady


@click.command("lsp", short_help="Show findings in an editor (Language Server Protocol).")
@click.option("--no-spark", is_flag=True, help="Do not start Spark; run only the checks that do not need it.")
def command(*, no_spark: bool) -> int:
    """Show findings in an editor, through the Language Server Protocol on stdin and stdout.

    Findings appear while you edit a spec or a test file. When you save a spec or a PySpark script, Spark
    checks it too. Your editor offers fixes as quick fixes. Hover over a finding to read its explanation.

    Your editor starts this command. It needs the extra `lsp`: pip install 'millstream[lsp]'.
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
