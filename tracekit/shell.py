"""Commands as a shell takes them."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from itertools import takewhile


def variable_words(variables: Mapping[str, str]) -> str:
    """`ONE=1 OTHER='a b'`; empty where there are none."""
    return " ".join(f"{name}={shlex.quote(value)}" for name, value in variables.items())


def with_variables(command: str, variables: Mapping[str, str]) -> str:
    """The command with these variables set for it alone: `NAME=value command`."""
    return f"{variable_words(variables)} {command}" if variables else command


def split_variables(command: str) -> tuple[dict[str, str], list[str]]:
    """The variables that are set before a command of tracekit's, and the command's own words."""
    words = shlex.split(command)
    variables = dict(word.split("=", 1) for word in takewhile(lambda word: "=" in word, words))
    return variables, words[len(variables) :]
