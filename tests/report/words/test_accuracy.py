from __future__ import annotations

from typing import Any

from tracekit.report.words.accuracy import REASONS, accuracy_because

ERROR = {"path": ".b", "compiled": 0.035, "eager": 0.01, "reference": "float32", "allowed": 0.034}
SHARES = {"path": "", "compiled_share": 0.4, "eager_share": 1.0, "reference": "float32"}
OUTPUT = {"path": "", "reference": "eager"}
#: What each code is said of.
FACTS: dict[str, dict[str, Any]] = {
    "equal": {},
    "same_without_finite_numbers": OUTPUT,
    "no_tensors": {},
    "not_comparable": {**OUTPUT, "problem": "has shape (1,) here and (2,) there"},
    "not_held_against_reference": OUTPUT,
    "error": {**ERROR, "compiled_from_itself": 1.4},
    "largest_error": ERROR,
    "rounding_amplified": ERROR,
    "no_numbers": OUTPUT,
    "no_finite_numbers": OUTPUT,
    "zeros": ERROR,
    "not_finite": {"path": "", "more": 3000, "reference": None},
    "integers": SHARES,
    "integers_diverge": SHARES,
    "integers_beside_eager": {"path": "", "share": 0.4},
    "difference": {"path": "", "compiled": 0.07, "allowed": 0.06, "no_reference": "it does not fit"},
}


def test_every_reason_reads_well(snapshot: Any) -> None:
    assert FACTS.keys() == REASONS.keys()
    assert [accuracy_because(code, facts) for code, facts in FACTS.items()] == snapshot
