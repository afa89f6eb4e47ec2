"""What findings and notes on ranks say."""

import pytest
from syrupy.assertion import SnapshotAssertion

from tracekit.model.advice import Advice
from tracekit.model.comparison import FindingStatement
from tracekit.ranks.compared import statements
from tracekit.ranks.compared.statements import (
    CommunicationLimits,
    DdpBuckets,
    FewerGathers,
    LessOverlap,
    MovedCollective,
    MovedCollectives,
)

BUCKETS = DdpBuckets("compiled", 13.0, 2.0, 25e6, 160e6, 0.9, 0.2, costs_time=True)
GATHERED = FewerGathers("compiled", 13.0, 2.0, 25e6, 160e6, 300.0, 2500.0)
LIMITED = CommunicationLimits(
    rank=0,
    compute_us=4000.0,
    gained_us=1000.0,
    exposed_us=2000.0,
    exposed_waiting_us=300.0,
    waiting_change_us=20.0,
    a_us=8000.0,
    b_us=7000.0,
    speedup_at_most=4.0,
)
MERGED = MovedCollective("all_reduce", 12.0, 4.0, 4e6, 4e6, same_bytes=True)
GONE = MovedCollective("all_gather", 2.0, 0.0, 4e6, 0.0, same_bytes=False)

#: Every finding, more than once where words differ with its facts.
FINDINGS: tuple[FindingStatement, ...] = (
    LIMITED,
    LIMITED.but(exposed_waiting_us=0.0),
    BUCKETS,
    BUCKETS.but(a_overlapped_share=None, b_overlapped_share=None),
    GATHERED,
    GATHERED.but(a_each_bytes=None, b_each_bytes=None, b_gathers=0.0),
    LessOverlap("compiled", 1, 0.9, 0.2, compute_us=-900.0, call_us=9000.0, lost_us=400.0),
    MovedCollectives("compiled", [MERGED, GONE], exposed_change_us=-250.0),
)


def of_ranks(kind: type) -> bool:
    return kind.__module__ == statements.__name__


def test_every_finding_is_here() -> None:
    assert {type(each) for each in FINDINGS} == {kind for kind in FindingStatement.classes.values() if of_ranks(kind)}


@pytest.mark.parametrize("code", sorted({each.code for each in FINDINGS}))
def test_a_finding_says(code: str, snapshot: SnapshotAssertion) -> None:
    assert [(each.title(), each.long()) for each in FINDINGS if each.code == code] == snapshot


def test_few_words_say_why_advice_is_worth_trying(snapshot: SnapshotAssertion) -> None:
    assert {each.code: why for each in FINDINGS if (why := each.why())} == snapshot


def test_buckets_that_cost_time_are_a_warning() -> None:
    assert [each.severity for each in (BUCKETS, BUCKETS.but(costs_time=False))] == ["warning", "info"]
    assert list(BUCKETS.facts)[-1] == "b_overlapped_share"


def test_lines_to_write_are_copied_as_they_stand(snapshot: SnapshotAssertion) -> None:
    advised = [kind() for kind in Advice.classes.values() if of_ranks(kind)]
    assert all(each.to_be_copied for each in advised)
    assert [(each.long(), each.short()) for each in advised] == snapshot
