"""`millstream completion`: print the script that completes commands and options in a shell."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from millstream.diagnostics.failure import InvalidInput

SHELLS = ("bash", "zsh", "fish")


@click.command("completion", short_help="Print a script that completes commands in your shell.")
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def command(context: click.Context, shell: str) -> None:
    """Print a script that completes commands, options and names of queries.

    For bash, add this line to ~/.bashrc: eval "$(millstream completion bash)".

    For zsh, add this line to ~/.zshrc: eval "$(millstream completion zsh)".

    For fish, run: millstream completion fish > ~/.config/fish/completions/millstream.fish
    """
    completion = get_completion_class(shell)
    if completion is None:
        raise InvalidInput(f"there is no completion for '{shell}'", f"name one of {', '.join(SHELLS)}")
    root = context.find_root().command
    script = completion(root, {}, "millstream", "_MILLSTREAM_COMPLETE").source()
    click.echo(script)
