"""Text that markdown and HTML take for text."""

from __future__ import annotations

import re

from tracekit.names import printable

ACTIVE = re.compile(r"([\\`*_\[\]<>#|~@$&])")

#: What begins a list, or underlines a heading, where it begins a line.
LEADING = re.compile(r"^(\s*\d*)([-+.)](?=\s|$)|[-=](?=[-=\s]*$))")


def escaped(text: str) -> str:
    """The text with nothing in it that markdown or HTML would act on, on one line."""
    return LEADING.sub(r"\1\\\2", ACTIVE.sub(r"\\\1", printable(text)))
