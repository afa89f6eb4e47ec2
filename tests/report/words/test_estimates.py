from __future__ import annotations

from typing import Any

from tracekit.model.estimate import Statement
from tracekit.report.words.estimates import DOUBTS, REASONS, reason_words

#: What each code is said of, where facts are needed.
FACTS: dict[str, dict[str, Any]] = {
    "holds_limit": {"doubts": [{"code": code, "by_share": 0.025} for code in DOUBTS]},
    "within_floor": {"code": "noise", "by_us": 55.0},
    "not_timed": {"side": "base"},
    "too_few_calls": {"side": "new", "needed": 5},
    "too_few_calls_in_own_processes": {"needed": 5},
    "windows_differ": {"a": "span", "b": "steps"},
    "process_spread_assumed": {"share": 0.024},
    "noise_for_process_spread": {"share": 0.08},
    "one_process_of_a_side": {"side": "new", "other": "base"},
    "unmatched": {"unmatched_share": 1.0},
    "mostly_matched": {"unmatched_share": 0.048},
}


def test_every_reason_reads_well(snapshot: Any) -> None:
    assert [reason_words([Statement(code, FACTS.get(code, {}))]) for code in REASONS] == snapshot


def test_several_stand_in_one_sentence_and_none_says_nothing() -> None:
    both = reason_words([Statement("interval"), Statement("one_process")])
    assert both == f"{reason_words([Statement('interval')])}; {reason_words([Statement('one_process')])}"
    assert reason_words([]) is None
    assert reason_words([Statement("holds_limit", {"doubts": []})]) == "its interval holds the limit"
