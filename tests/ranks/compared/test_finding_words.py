"""What findings on ranks say."""

from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from tracekit.model.advice import Action
from tracekit.model.comparison import Finding
from tracekit.ranks.compared.finding_words import IN_CODE, LINES, WHY, WORDS
from tracekit.report.words.findings import finding_advice, finding_evidence, finding_title, is_code
from tracekit.report.words.short import advice_words

OVERLAPPED = {"a_overlapped_share": 0.9, "b_overlapped_share": 0.2}
BUCKETS = {"a_buckets": 13.0, "b_buckets": 2.0, "a_each_bytes": 25e6, "b_each_bytes": 160e6, **OVERLAPPED}
GATHERED = {"a_gathers": 13.0, "b_gathers": 2.0, "a_each_bytes": 25e6, "b_each_bytes": 160e6}
GATHERED |= {"a_exposed_us": 300.0, "b_exposed_us": 2500.0}
LIMITED = {"rank": 0, "compute_us": 4000.0, "gained_us": 1000.0, "exposed_us": 2000.0, "exposed_waiting_us": 300.0}
LIMITED |= {"waiting_change_us": 20.0, "a_us": 8000.0, "b_us": 7000.0, "speedup_at_most": 4.0}
MERGED = {"name": "all_reduce", "a_count": 12.0, "b_count": 4.0, "a_bytes": 4e6, "b_bytes": 4e6, "same_bytes": True}
GONE = {"name": "all_gather", "a_count": 2.0, "b_count": 0.0, "a_bytes": 4e6, "b_bytes": 0.0, "same_bytes": False}

#: Facts of every finding, more than once where words differ with them; each is of the compiled side.
FACTS: dict[str, tuple[dict[str, Any], ...]] = {
    "communication_limits": (LIMITED, {**LIMITED, "exposed_waiting_us": 0.0}),
    "ddp_buckets": (BUCKETS, {**BUCKETS, "a_overlapped_share": None, "b_overlapped_share": None}),
    "fewer_gathers": (GATHERED, {**GATHERED, "a_each_bytes": None, "b_each_bytes": None, "b_gathers": 0.0}),
    "less_overlap": ({"rank": 1, **OVERLAPPED, "compute_us": -900.0, "call_us": 9000.0, "lost_us": 400.0},),
    "moved_collectives": ({"changes": [MERGED, GONE], "exposed_change_us": -250.0},),
}


def test_every_finding_is_here() -> None:
    assert set(FACTS) == set(WORDS)


@pytest.mark.parametrize("code", FACTS)
def test_a_finding_says(code: str, snapshot: SnapshotAssertion) -> None:
    findings = [Finding(code, "warning", {"side": "compiled", **facts}, None) for facts in FACTS[code]]
    assert [(finding_title(each), finding_evidence(each)) for each in findings] == snapshot


def test_lines_to_write_are_copied_as_they_stand(snapshot: SnapshotAssertion) -> None:
    advised = [Finding("ddp_buckets", "warning", {}, None, Action(code)) for code in LINES]
    assert all(map(is_code, advised)) and [finding_advice(each) for each in advised] == snapshot


def test_advice_on_ranks_is_told_in_few_words() -> None:
    for code, action in (
        ("fewer_gathers", "shard_then_compile"),
        ("ddp_buckets", "wrap_then_compile"),
        ("less_overlap", "prefetch_weights"),
    ):
        words, why = advice_words(Finding(code, "warning", {}, action=Action(action)))
        assert words == IN_CODE[action] and why == WHY[code]
