"""docs/note-codes.md lists every note with its facts."""

from __future__ import annotations

import inspect
import re

import pytest

from tracekit.report.words.notes import SENTENCES

from .texts import DOCS

ROWS = dict(re.findall(r"^\| `(\w+)` \| (.*?) \|", (DOCS / "note-codes.md").read_text(encoding="utf-8"), re.MULTILINE))
#: Beside the facts of a difference where more than two runs are compared.
NAMES = {"a_name", "b_name"}


@pytest.mark.parametrize("code", SENTENCES)
def test_a_note_is_listed_with_its_facts(code: str) -> None:
    named = [each for each in inspect.signature(SENTENCES[code]).parameters.values() if each.kind is each.KEYWORD_ONLY]
    assert set(re.findall(r"`(\w+)`", ROWS[code])) - NAMES == {each.name for each in named}


def test_no_note_is_listed_that_is_no_more() -> None:
    assert set(ROWS) == set(SENTENCES)
