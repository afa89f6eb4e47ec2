from typing import Any, get_args

from msgspec.structs import replace

from tracekit.model.comparison import Bound, BoundIfSlowed, UnknownLimit
from tracekit.model.estimate import Statement
from tracekit.report.words import reasons
from tracekit.statements.noted import ModulesNotNamed, ShapesDiffer

#: What each code is said of, where facts are needed.
FACTS: dict[str, dict[str, Any]] = {
    "holds_limit": {"doubts": [{"code": code, "by_share": 0.025} for code in reasons.DOUBTS]},
    "within_floor": {"code": "noise", "by_us": 55.0},
    "allocator_slack": {"slack_bytes": 2 << 20},
    "processes_would_do": {"processes": 43},
    "no_processes_would_do": {"most": 50},
    "not_timed": {"side": "base"},
    "too_few_calls": {"side": "new", "needed": 5},
    "too_few_calls_in_own_processes": {"needed": 5},
    "windows_differ": {"a": "span", "b": "steps"},
    "process_spread_assumed": {"share": 0.024},
    "noise_for_process_spread": {"share": 0.08},
    "job_spread_assumed": {"share": 0.024},
    "rank_with_most": {"rank": 1},
    "one_process_of_a_side": {"side": "new", "other": "base"},
    "unmatched": {"unmatched_share": 1.0},
    "mostly_matched": {"unmatched_share": 0.048},
}


def test_every_reason_reads_well(snapshot: Any) -> None:
    assert [reasons.reason_words([Statement(code, FACTS.get(code, {}))]) for code in reasons.REASONS] == snapshot


def test_several_stand_in_one_sentence_and_none_says_nothing() -> None:
    both = reasons.reason_words([Statement("interval"), Statement("one_process")])
    assert (
        both == f"{reasons.reason_words([Statement('interval')])}; {reasons.reason_words([Statement('one_process')])}"
    )
    assert reasons.reason_words([]) is None
    assert reasons.reason_words([Statement("holds_limit", {"doubts": []})]) == "the interval contains the limit"


ERROR = {"path": ".b", "compiled": 0.035, "eager": 0.01, "reference": "float32", "allowed": 0.034}
SHARES = {"path": "", "compiled_share": 0.4, "eager_share": 1.0, "reference": "float32"}
OUTPUT = {"path": "", "reference": "eager"}
#: What each code is said of.
ACCURACY_FACTS: dict[str, dict[str, Any]] = {
    "equal": {},
    "same_without_finite_numbers": OUTPUT,
    "no_tensors": {},
    "not_comparable": {**OUTPUT, "mismatch": ShapesDiffer(shape=(1,), other_shape=(2,))},
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
    "difference": {"path": "", "compiled": 0.07, "allowed": 0.06, "no_reference": ModulesNotNamed()},
    "random_numbers": {"path": "", "difference": 0.95, "another_seed": 0.97},
}


def test_every_answer_on_accuracy_reads_well(snapshot: Any) -> None:
    assert ACCURACY_FACTS.keys() == reasons.ACCURACY.keys()
    assert [reasons.accuracy_because(code, facts) for code, facts in ACCURACY_FACTS.items()] == snapshot


NONE = dict.fromkeys((*reasons.PARTS, "unknown"), 0.0)


def bound(kind: str | None = "mixed", basis: str = "unprofiled", starved: float | None = None, **parts: float) -> Bound:
    return Bound(kind, basis, {**NONE, **parts}, starved)  # type: ignore[arg-type]


def test_every_bound_reads_well(snapshot: object) -> None:
    by_part = [bound(**{part: 70.0}, launch=100.0) for part in reasons.PARTS if part != "launch"]
    unknown = [replace(bound(launch=90.0, unknown=10.0), unknown_because=why) for why in get_args(UnknownLimit)]
    alone = bound("launch-bound", "trace", 0.98, launch=95.0, compute=5.0)
    slowed = [BoundIfSlowed(2.0, "launch-bound", kind) for kind in ("launch-bound", "compute-bound", None)]
    traces = [replace(alone, if_slowed=each) for each in slowed]
    every = (bound(), bound("launch-bound", starved=0.98, launch=95.0, compute=5.0), *by_part, *unknown, *traces)
    assert "".join(f"{reasons.bound_because(each)}\n" for each in every) == snapshot


def test_work_of_unknown_limit_is_worth_a_word_from_two_percent_on() -> None:
    known = bound(launch=60.0, compute=38.5, unknown=1.5)
    assert reasons.UNKNOWN_BECAUSE["no_sizes"] not in reasons.bound_because(replace(known, unknown_because="no_sizes"))
    told = bound(launch=60.0, compute=37.0, unknown=3.0)
    assert reasons.UNKNOWN_BECAUSE["no_sizes"] in reasons.bound_because(replace(told, unknown_because="no_sizes"))
