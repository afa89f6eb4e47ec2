from typing import Any, get_args

from syrupy.assertion import SnapshotAssertion

from tracekit.model.estimate import DoubtCode, Reason, reason_words
from tracekit.statements.reasons import (
    DOUBTS,
    DoubtOfLimit,
    HoldsLimit,
    OneProcess,
    WholeInterval,
    WithinFloor,
)

#: Facts of each reason; the others have none.
FACTS: dict[str, dict[str, Any]] = {
    "holds_limit": {"doubts": [DoubtOfLimit(code, by_share=0.025) for code in DOUBTS]},
    "within_floor": {"doubt": DoubtOfLimit("noise", by_us=55.0)},
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


def reason(code: str) -> Reason:
    of_code: Any = Reason.classes[code]
    made: Reason = of_code(**FACTS.get(code, {}))
    return made


def test_every_reason_reads_well(snapshot: SnapshotAssertion) -> None:
    assert set(DOUBTS) == set(get_args(DoubtCode))
    assert [reason(code).long() for code in Reason.classes] == snapshot


def test_several_stand_in_one_sentence_and_none_says_nothing() -> None:
    both = WholeInterval(), OneProcess()
    assert reason_words(both) == f"{both[0].long()}; {both[1].long()}"
    assert reason_words([]) is None
    assert HoldsLimit([]).long() == "the interval contains the limit"


def test_doubts_are_written_in_the_limit_s_own_terms() -> None:
    share, time = DoubtOfLimit("noise", by_share=0.025), DoubtOfLimit("calls", by_us=55.0)
    written = [{"code": "noise", "by_share": 0.025}, {"code": "calls", "by_us": 55.0}]
    assert HoldsLimit([share, time]).facts == {"doubts": written}
    assert [WithinFloor(each).facts for each in (share, time)] == written
