"""docs/note-codes.md lists every note."""

from __future__ import annotations

import re

from tracekit.report.words.notes import SENTENCES

from .texts import DOCS


def test_every_note_is_listed_and_no_other() -> None:
    found = re.findall(r"^\| `(\w+)` \|", (DOCS / "note-codes.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(found) == sorted(SENTENCES)
