"""Text that markdown and HTML take for text."""

from __future__ import annotations

import re

from tracekit.names import printable

ACTIVE = re.compile(r"([\\`*_\[\]<>#|~@$&])")

#: What begins a list, or underlines a heading, where it begins a line.
LEADING = re.compile(r"^(\s*\d*)([-+.)](?=\s|$)|[-=](?=[-=\s]*$))")

#: What GitHub makes links of though nothing marks them: mentions, mail addresses, issues by number.
REFERENCE = re.compile(r"@(?=\w)|#(?=\d)|GH-(?=\d)", re.IGNORECASE)


def escaped(text: str) -> str:
    """The text with nothing in it that markdown or HTML would act on, on one line."""
    return unlinked(LEADING.sub(r"\1\\\2", ACTIVE.sub(r"\\\1", printable(text))))


def unlinked(text: str) -> str:
    """Markdown or HTML of which GitHub makes no link, and which reads as before. Not for code, where nothing becomes a
    link and all of this would show."""
    # An address is found in what is written, where an entity hides it; a reference in what is shown, where an entity
    # is a character again, and only an element parts the text.
    text = REFERENCE.sub(r"\g<0><!-- -->", text).replace("://", ":&#47;&#47;")
    return re.sub(r"(www)\.", r"\1&#46;", text, flags=re.IGNORECASE)
