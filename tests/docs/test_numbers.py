"""docs/numbers.md leaves out nothing that a page shows."""

from __future__ import annotations

import re
from typing import get_args

from tracekit.model.analysis import FAMILIES, IDLE_CAUSES
from tracekit.model.comparison import BoundKind, MatchedBy
from tracekit.model.timing import StopReason
from tracekit.report.sections.figures import COUNTS
from tracekit.report.words.findings import WORDS

from .texts import DOCS

NUMBERS = (DOCS / "numbers.md").read_text(encoding="utf-8")


def missing(names: set[str]) -> list[str]:
    return sorted(name for name in names if not re.search(rf"\b{re.escape(name)}\b", NUMBERS))


def test_every_row_of_the_side_by_side_table_is_defined() -> None:
    assert [label for label in COUNTS if label.removeprefix("Memory ") not in NUMBERS] == []


def test_every_finding_is_listed() -> None:
    assert missing(set(WORDS)) == []


def test_every_word_that_stands_for_a_rule_is_said() -> None:
    assert missing({*FAMILIES, *get_args(StopReason), *get_args(MatchedBy)}) == []
    idle, bounds = ((DOCS / page).read_text(encoding="utf-8") for page in ("idle.md", "bounds.md"))
    assert [cause for cause in IDLE_CAUSES if f"`{cause}`" not in idle] == []
    assert [kind for kind in get_args(BoundKind) if f"`{kind}`" not in bounds] == []
