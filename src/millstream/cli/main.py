"""The `millstream` command: import a command's module when it is called, and turn errors into exit codes."""

from __future__ import annotations

import errno
import importlib
import io
import os
import pwd
import sys
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from millstream import __version__
from millstream.cli import stderr_redaction
from millstream.cli.messages import add_message_options, format_failure, fresh_settings, is_verbose
from millstream.cli.progress import overwrite_line
from millstream.cli.signals import READER_ENDED, exit_on_termination, silence_closed_pipe
from millstream.diagnostics.failure import MillstreamError, NotReady
from millstream.diagnostics.snippet import escape_lines
from millstream.spec.secrets.redaction import redact

# In the order of `millstream --help`. Each command is a module with the command's name and a function `command`, in
# `cli` or in the folder that FOLDERS names. The summary is repeated here so that `millstream --help` imports none of
# the modules.
GROUPS = {
    "Start": {
        "init": "Start a project from an example, a topic or files.",
        "demo": "Run the e-commerce example with its servers and traffic.",
        "doctor": "Check that this machine has what Millstream needs.",
        "docs": "Open the documentation of this version.",
    },
    "Write": {
        "check": "Find errors in a pipeline before it starts.",
        "dev": "Check, test and show rows whenever a file is saved.",
        "migrate": "Convert a PySpark script or Spark declarative pipelines.",
        "explain": "Explain a finding, a source, a sink, a query or a term.",
        "graph": "Draw sources, views, queries and sinks.",
        "test": "Run event-time tests on a real Spark engine.",
        "config": "Print the spec with every default filled in.",
        "schema": "Print the JSON schema of a spec, for editors.",
    },
    "Run": {
        "run": "Run the pipeline.",
        "show": "Print the latest rows of a view or a sink.",
        "deadletter": "Handle rejected records and batches that a sink refused.",
        "plan": "Show whether changed queries can continue from their checkpoints.",
        "checkpoint": "Inspect, check, copy, move and rewind checkpoints.",
        "state": "Print, compare or export the state of a query.",
        "reset": "Delete the checkpoint of a query, so that it starts from scratch.",
        "backfill": "Recompute past results, or compare tables with a batch run.",
        "prove": "Test the delivery guarantees by killing a copy of the pipeline.",
        "package": "Write one archive for deployment: spec, code, jars, package versions.",
    },
    "Local servers": {
        "up": "Start a local Kafka broker, Postgres server and Spark cluster.",
        "down": "Stop the local stack.",
        "ps": "Show the servers of the local stack.",
        "logs": "Print a local server's log.",
        "traffic": "Send generated events to the local stack.",
    },
    "Setup": {
        "jars": "Download and verify the jars that Spark needs.",
        "lsp": "Show findings in an editor (Language Server Protocol).",
        "completion": "Print a script that completes commands in your shell.",
    },
}
COMMANDS = {name: summary for commands in GROUPS.values() for name, summary in commands.items()}
# Commands whose module is in a folder with its helpers.
FOLDERS = {
    "check": "check",
    "checkpoint": "plan",
    "completion": "setup",
    "config": "explain",
    "deadletter": "deadletter",
    "demo": "run",
    "dev": "dev",
    "docs": "setup",
    "down": "stack",
    "explain": "explain",
    "graph": "explain",
    "jars": "setup",
    "logs": "stack",
    "lsp": "check",
    "migrate": "check",
    "package": "run",
    "plan": "plan",
    "prove": "prove",
    "reset": "run",
    "ps": "stack",
    "run": "run",
    "schema": "explain",
    "show": "run",
    "state": "plan",
    "test": "test",
    "traffic": "stack",
    "up": "stack",
}
# Commands that print, do nothing else, and whose exit code tells nothing about what they print.
PRINTING = {
    "checkpoint list",
    "checkpoint show",
    "completion",
    "config",
    "deadletter list",
    "deadletter show",
    "explain",
    "graph",
    "jars",
    "logs",
    "ps",
    "schema",
    "show",
    "state diff",
    "state show",
    "state size",
}
DEFECT = 70
# What a user can do about the errors of a file system that are not defects of Millstream, if a file is named.
_FILE_ERRORS = {
    errno.EACCES: "grant this user the permission",
    errno.EPERM: "grant this user the permission",
    errno.EROFS: "name a folder on a file system that can be written",
    errno.ENOTDIR: "name another path; this one has a file in the place of a folder",
    errno.EISDIR: "name a file; this is a folder",
    errno.ENAMETOOLONG: "choose a shorter name",
    errno.ENOSPC: "free space on its disk",
    errno.EDQUOT: "free space within the quota of this user",
    errno.EMLINK: "name a folder on a file system that allows more links to a file",
    errno.ENOTSUP: "name a folder on a file system that supports this",
}


def command_module(name: str) -> str:
    """Return the module of a command: `millstream.cli.stack.up`, `millstream.cli.doctor`."""
    folder = FOLDERS.get(name)
    return f"millstream.cli.{folder}.{name}" if folder else f"millstream.cli.{name}"


class Commands(click.Group):
    """A group that imports a command's module only when that command is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return all command names, in the order of work."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        """Import and return the command, or None if there is no such command."""
        if name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(command_module(name)).command
        add_message_options(command)
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the options. If the reader of `--help` or `--version` has ended, return 0; click would return 1."""
        try:
            return super().parse_args(ctx, args)
        except BrokenPipeError:
            if not silence_closed_pipe():
                raise
            ctx.exit(0)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command. If the reader of its output has ended, return 141, or 0 for a command that only prints.

        click returns 1 in both cases, and also for a connection that a server has closed.
        """
        # Of a group, such as `state`, the first argument is the name of the command; its options have no values.
        first = next((argument for argument in ctx.args if not argument.startswith("-")), "")
        asks_help = not set(ctx.help_option_names).isdisjoint(ctx.args)
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            if silence_closed_pipe():
                name = str(ctx.invoked_subcommand)
                return 0 if asks_help or {name, f"{name} {first}"} & PRINTING else READER_ENDED
            raise ConnectionError(str(error)) from error

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Resolve a command; suggest the nearest name if there is no such command."""
        import difflib

        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            near = difflib.get_close_matches(args[0], COMMANDS, n=1)
            hint = f" Did you mean '{near[0]}'?" if near else " See 'millstream --help'."
            raise click.UsageError(f"There is no command '{args[0]}'.{hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's signature
        """Write the commands in their groups, in one column for all."""
        width = max(map(len, COMMANDS))
        for group, commands in GROUPS.items():
            with formatter.section(group):
                formatter.write_dl([(f"{name:<{width}}", summary) for name, summary in commands.items()])


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="millstream")
def cli() -> None:
    """Check, test, run and watch Spark Structured Streaming pipelines, each declared in one file."""


add_message_options(cli, hidden=False)


def main(args: list[str] | None = None) -> None:
    """Run the command line and exit with a code of docs/reference/command-line.md."""
    stderr_redaction.install()
    exit_on_termination()
    sys.exit(run_command(args))


def run_command(args: list[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    with fresh_settings():
        return _run(args)


def _run(args: list[str] | None) -> int:
    try:
        result: Any = cli.main(args, prog_name="millstream", standalone_mode=False)
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.ClickException as error:
        message = io.StringIO()
        error.show(message)
        overwrite_line("")
        click.echo(redact(message.getvalue()), err=True, nl=False)
        return 2
    except click.Abort:
        return 130
    except MillstreamError as failure:
        return _report(failure)
    except Exception as error:  # noqa: BLE001 - the one place where a bug in Millstream becomes exit code 70
        explained = _explain_lost_jvm(error) or _explain_file_error(error) or _explain_lost_connection(error)
        if explained is not None:
            return _report(explained)
        overwrite_line("")
        click.echo(
            "millstream: this is a bug in Millstream, not in your pipeline; please report it:", err=True
        )
        click.echo(escape_lines(redact(traceback.format_exc())), err=True)
        return DEFECT
    return result if isinstance(result, int) else 0


def _explain_lost_jvm(error: Exception) -> MillstreamError | None:
    """Return what to report if the command failed because its JVM has ended. Imports nothing if it has had none."""
    session = sys.modules.get("millstream.spark.session")
    lost: MillstreamError | None = session.explain_lost_jvm(error) if session is not None else None
    if lost is not None:
        lost.__cause__ = error
    return lost


def _explain_file_error(error: Exception) -> MillstreamError | None:
    """Return what to report if the file system has refused to read or write a file, which is no defect."""
    if isinstance(error, FileNotFoundError) and not _has_working_folder():
        failure = NotReady("the working folder does not exist any more", "change to a folder that exists: cd")
        failure.__cause__ = error
        return failure
    if not isinstance(error, OSError) or error.errno not in _FILE_ERRORS:
        return None
    fix = _FILE_ERRORS[error.errno]
    # Of two names, the second is that of the file to be written.
    file = error.filename2 if isinstance(error.filename2, str) else error.filename
    if not isinstance(file, str):
        # A write to an open file does not name it. Other errors without a name are not about a file.
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            return None
        file = "a file"
    if error.errno == errno.EACCES and (owner := _find_owner(Path(file))) is not None:
        fix = f"run the command as user '{owner}', or {fix}"
    failure = NotReady(f"{file} cannot be read or written: {error.strerror}", fix)
    failure.__cause__ = error
    return failure


def _explain_lost_connection(error: Exception) -> MillstreamError | None:
    """Return what to report if a server has closed a connection, which is no defect."""
    if not isinstance(error, ConnectionError):
        return None
    failure = NotReady(
        f"a connection to a server failed: {error}", "look whether the server runs, and run the command again"
    )
    failure.__cause__ = error
    return failure


def _has_working_folder() -> bool:
    try:
        Path.cwd()
    except FileNotFoundError:
        return False
    return True


def _find_owner(file: Path) -> str | None:
    """Return the user, if it is another one, who owns a file, or the innermost folder above that is visible."""
    for path in (file, *file.absolute().parents):
        with suppress(OSError):
            uid = path.stat().st_uid
            with suppress(KeyError):
                return None if uid == os.geteuid() else pwd.getpwuid(uid).pw_name
            return str(uid)
    return None


def _report(failure: MillstreamError) -> int:
    """Print a failure with its fix, and return its exit code."""
    overwrite_line("")
    click.echo(format_failure(failure), err=True)
    if is_verbose():
        _print_causes(failure)
    return failure.exit_code


def _print_causes(failure: BaseException) -> None:
    """Print the errors that led to this one, one line each."""
    cause = failure.__cause__ or failure.__context__
    while cause is not None:
        text = " ".join(str(cause).split()) or "no message"
        click.echo(escape_lines(redact(f"  caused by {type(cause).__name__}: {text}")), err=True)
        cause = cause.__cause__ or cause.__context__
