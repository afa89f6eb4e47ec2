"""`tracekit completion`: the script by which a shell completes tracekit's commands, options and workloads."""

import click

from tracekit.printing import hand_over


@click.command(epilog="Example: tracekit completion bash >> ~/.bashrc")
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
def completion(shell: str) -> None:
    """Print the completion script of SHELL.

    In ~/.bashrc or ~/.zshrc, eval "$(tracekit completion bash)" works too. For fish: tracekit completion fish >
    ~/.config/fish/completions/tracekit.fish
    """
    from click.shell_completion import get_completion_class

    from tracekit.cli.main import main

    found = get_completion_class(shell)
    if found is None:
        raise AssertionError(f"click completes {shell}")
    hand_over(found(main, {}, "tracekit", "_TRACEKIT_COMPLETE").source() + "\n")
