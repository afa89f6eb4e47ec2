"""Whether a command line is one that this version of tracekit has."""

import re
import shlex

import click

from tracekit.cli.main import COMMANDS, main

#: What stands for something else in a line of prose.
ELLIPSIS = {"...", "…"}


def words_of(line: str) -> list[str]:
    """The words behind variables that are set before the program."""
    words = shlex.split(line, comments=True)
    while words and re.match(r"[A-Z_]+=", words[0]):
        words.pop(0)
    return words


def check_command(line: str) -> None:
    """Raises for a command or an option that tracekit has not, and for a value that the option does not take."""
    _, name, *rest = words_of(line)
    if name.startswith("-"):
        return
    assert name in COMMANDS, line
    command = main.get_command(click.Context(main), name)
    assert command is not None
    words = [word for word in rest if word not in ELLIPSIS]
    context = click.Context(command, info_name=name, **command.context_settings)
    # In prose an option may be named without its value.
    given, _, _ = command.make_parser(context).parse_args([*words, *needed(command, words)])
    for option in command.params:
        asked = given.get(option.name or "")
        if isinstance(option.type, click.Choice) and isinstance(asked, str) and not asked.isupper():
            option.type.convert(asked, option, context)
    # A word that no option takes would be one of a model's own.
    more = given.get("options")
    assert name != "profile" or "--" in words or not (isinstance(more, tuple) and more), line


def needed(command: click.Command, words: list[str]) -> list[str]:
    """A value for an option that the words end with."""
    valued = {flag for option in command.params if not getattr(option, "is_flag", False) for flag in option.opts}
    return ["VALUE"] if words and words[-1] in valued and words[-1].startswith("-") else []
