"""The mark by which a page and its markdown twin say, to programs, what they are a report of."""

import re

HEAD = '<meta charset="utf-8">\n'
#: An identity: sixteen bytes, as `reading/reports.py` makes them.
IDENTITY = "[0-9a-f]{32}"
IN_PAGE = re.compile(rf'<meta name="tracekit-report" content="({IDENTITY})">'.encode())
IN_TWIN = re.compile(rf"\n<!-- tracekit-report: ({IDENTITY}) -->\n\Z".encode())
#: In so many of a page's first bytes, or of a twin's last, the mark is found.
REACH = 1000


def marked_page(page: str, identity: str) -> str:
    """The page with the mark near its top."""
    return page.replace(HEAD, f'{HEAD}<meta name="tracekit-report" content="{identity}">\n', 1)


def marked_twin(twin: str, identity: str) -> str:
    """The markdown with the mark as its last line, which nobody is shown."""
    return f"{twin.rstrip()}\n\n<!-- tracekit-report: {identity} -->\n"


def find_mark(begin: bytes, end: bytes) -> str | None:
    """What a file that begins and ends so is marked as; None for what is no report, or was written before reports were
    marked."""
    found = IN_PAGE.search(begin[:REACH]) or IN_TWIN.search(end[-REACH:])
    return found[1].decode() if found else None
