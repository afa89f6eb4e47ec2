"""Commands as a shell takes them.

What a run says of itself may be a stranger's: in a command that a reader is to type every word is quoted, and only
variables that steer torch are set.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from tracekit.variables import steering_variables


def variable_words(variables: Mapping[str, str]) -> str:
    """`ONE=1 OTHER='a b'`; empty where there are none. What no shell takes for a name is left out."""
    return " ".join(f"{name}={shlex.quote(value)}" for name, value in variables.items() if _is_name(name))


def with_variables(command: str, variables: Mapping[str, str]) -> str:
    """The command with those of the variables set for it alone that steer torch: `NAME=value command`."""
    steering = steering_variables(variables)
    words = variable_words({name: value for name, value in variables.items() if name in steering})
    return f"{words} {command}" if words else command


def split_variables(command: str) -> tuple[dict[str, str], list[str]]:
    """The variables that are set before a command of tracekit's, and the command's own words; nothing of what no shell
    would take."""
    try:
        words = shlex.split(command)
    except ValueError:
        return {}, []
    variables: dict[str, str] = {}
    while words and "=" in words[0] and _is_name(words[0].partition("=")[0]):
        name, _, value = words.pop(0).partition("=")
        variables[name] = value
    return variables, words


def retyped(command: str) -> str | None:
    """The command of tracekit's with every word quoted anew; None for what is none."""
    variables, words = split_variables(command)
    return with_variables(shlex.join(words), variables) if words[:1] == ["tracekit"] else None


def _is_name(text: str) -> bool:
    return text.isascii() and text.isidentifier()
