"""The `millstream` command: finds each command's file when it is asked for, and turns errors into exit codes."""

from __future__ import annotations

import importlib
import sys
import traceback
from typing import Any

import click

from millstream import __version__
from millstream.diagnostics.failure import MillstreamError

# The order is the order of work: set up, look, run, look again. A command is `cli/<name>.py` with a `command`;
# the summary stands here as well, so that `millstream --help` opens none of the files.
COMMANDS = {
    "init": "Start a project from a template or an example.",
    "doctor": "Say what this machine lacks and how to get it.",
    "check": "Prove a pipeline right before it starts.",
    "explain": "Explain a finding, a source or a sink.",
    "graph": "Draw sources, views, queries and sinks.",
    "test": "Play event-time tests on the real engine.",
    "up": "Start a local Kafka broker and Postgres server.",
    "down": "Stop the local stack.",
    "ps": "Show what of the local stack is running.",
    "logs": "Print a local server's log.",
    "traffic": "Send generated events to the local stack.",
    "run": "Run the pipeline.",
    "show": "Print the latest rows of a view or a sink.",
    "deadletter": "List, show, replay and purge what was set aside.",
    "backfill": "Compute old results again, or compare tables with a batch run.",
    "prove": "Kill the pipeline, and compare its sinks with a batch run.",
    "config": "Print the spec with every default filled in.",
    "schema": "Print the JSON schema of a spec, for editors.",
    "jars": "Fetch and verify the jars that Spark needs.",
    "demo": "Stack, traffic and the e-commerce pipeline in one command.",
}
DEFECT = 70


class Commands(click.Group):
    """A group that imports a command's module only when that command is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """All commands, in the order of work."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        """The command of that name, or None."""
        if name not in COMMANDS:
            return None
        found: click.Command = importlib.import_module(f"millstream.cli.{name}").command
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does, with the nearest command named when there is none of that name."""
        import difflib

        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            near = difflib.get_close_matches(args[0], COMMANDS, n=1)
            hint = f" Did you mean '{near[0]}'?" if near else " See 'millstream --help'."
            raise click.UsageError(f"There is no command '{args[0]}'.{hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's signature
        """The list of commands, from the table above."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="millstream")
def cli() -> None:
    """Spark Structured Streaming pipelines in one file: checked, exactly-once, seen live."""


def main(args: list[str] | None = None) -> None:
    """Run the command line and exit: 0, 1, 2, 3, 4 or 70 (see the README)."""
    sys.exit(status(args))


def status(args: list[str] | None = None) -> int:
    """Run the command line and give its exit code."""
    try:
        done: Any = cli.main(args, prog_name="millstream", standalone_mode=False)
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.ClickException as wrong:
        wrong.show()
        return 2
    except click.Abort:
        return 130
    except MillstreamError as failed:
        click.echo(f"millstream: {failed.what}", err=True)
        if failed.fix:
            click.echo(f"  fix: {failed.fix}", err=True)
        return failed.exit_code
    except BrokenPipeError:
        return 0
    except Exception:  # noqa: BLE001 - the one place where a defect of ours becomes exit code 70
        click.echo(
            "millstream: this is a defect of millstream, not of your pipeline; please report it:", err=True
        )
        click.echo(traceback.format_exc(), err=True)
        return DEFECT
    return done if isinstance(done, int) else 0
