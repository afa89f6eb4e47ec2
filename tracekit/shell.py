"""Commands as a shell takes them."""

from __future__ import annotations

import shlex
from collections.abc import Mapping


def with_variables(command: str, variables: Mapping[str, str]) -> str:
    """The command with these variables set for it alone: `NAME=value command`. Without a command, the variables."""
    words = [f"{name}={shlex.quote(value)}" for name, value in variables.items()]
    return " ".join([*words, command] if command else words)
