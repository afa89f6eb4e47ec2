"""What each finding on many ranks says, and what it advises: read the snapshot when it changes."""

from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from tracekit.ranks.job_figures import RankFinding
from tracekit.ranks.statements import findings

COST: dict[str, Any] = {"exposed_us": 3000.0, "price_us": 700.0, "price_of_waiting_us": 600.0, "cost_us": 3600.0}
LATE: dict[str, Any] = {"waiter": 0, "most_waited_us": 5000.0, **COST, "share": 0.036, "steps": 10, "last": 1900}
LATE |= {"of": 2000, "cause": "compute", "cause_us": 4000.0, "cause_share": 0.8, "where": "train.py(12): step"}
UNTOLD: dict[str, Any] = {"price_us": None, "price_of_waiting_us": None, "steps": 1, "where": None, "cause": "guards"}
SLOW: dict[str, Any] = {"name": None, "ranks": (3,), "excess": 0.12, "ci95": (0.1, 0.14), "chance": 1e-9}
SLOW |= {"lost_us": 9000.0, "share": 0.1, "steps": 100, "steps_slower": 93}
WAITED: dict[str, Any] = {"cause": "python", "cause_share": 0.7, "waited_us": 5e5}
LINK: dict[str, Any] = {"name": "data", "collective": "all_reduce", "message_bytes": 64 << 20}
LINK |= {"busbw_gbps": 120.0, "usual_gbps": 240.0}
PAUSE: dict[str, Any] = {"cause": "python", "more_us": 250.0, "own_us": 300.0, "usual_us": 50.0, "steps": 10}
SYNC: dict[str, Any] = {"count": 30, "usual_count": 0.0, "idle_us": 900.0, "share": 0.03, "where": "train.py(9): log"}
WORK: dict[str, Any] = {"more_us": 2500.0, "share": 0.05, "kernel": "spin_kernel", "count": 10, "usual_count": 0.0}
EXPOSED: dict[str, Any] = {"exposed_transfer_us": 4000.0, "share": 0.2}
TRANSFER: dict[str, Any] = {"collective": "all_reduce", "message_bytes": 32 << 20, "ranks": (2, 3), "busbw_gbps": 45.0}
TRANSFER |= {"transfer_us": 800.0}
EVERY: tuple[RankFinding, ...] = (
    findings.LateRank(1, 3600.0, **LATE),
    findings.LateRank(1, 3600.0, **LATE | UNTOLD),
    findings.SlowHost(1, None, **LATE),
    findings.StragglerRank(3, 9000.0, **SLOW, **WAITED),
    findings.StragglerRank(3, 9000.0, **SLOW | {"chance": 0.0021, "steps": 1, "steps_slower": 1}, **WAITED),
    findings.StragglerHost(None, 9000.0, **SLOW | {"name": "node7", "ranks": tuple(range(8))}, **WAITED),
    findings.StragglerLink(None, 9000.0, **SLOW | LINK | {"ranks": tuple(range(8))}),
    findings.HeldUp(1, 2500.0, **PAUSE, kernel="gemm", where="train.py(12): step"),
    findings.HeldUp(1, None, **PAUSE, kernel="gemm" * 20, where=None),
    findings.LoneSync(1, 900.0, **SYNC),
    findings.LoneSync(1, None, **SYNC | {"count": 1, "where": None}),
    findings.MoreLaunches(1, None, more=900.0, count=2900, usual_count=2000.0),
    findings.UnevenWork(1, 2500.0, **WORK, kernels=1),
    findings.UnevenWork(1, 2500.0, **WORK, kernels=3),
    findings.SlowGpu(1, 900.0, slower=0.05, compute_us=20_000.0),
    findings.UnevenStages(None, 900.0, ranks=(2, 3), stages=4, compute_us=9000.0, mean_us=7500.0, share=0.2),
    findings.Recompiled(1, 4000.0, compile_us=4000.0, share=0.4, where="train.py(12): step"),
    findings.Recompiled(1, 4000.0, compile_us=4000.0, share=0.4, where=None),
    findings.ExposedAllGathers(None, 4000.0, **EXPOSED, of_transfer=0.5),
    findings.NoOverlap(1, 4000.0, **EXPOSED, collective="all_reduce", one_stream=True),
    findings.NoOverlap(1, 4000.0, **EXPOSED, collective="all_reduce", one_stream=False),
    findings.ExposedCommunication(1, 4000.0, **EXPOSED, collective="all_reduce"),
    findings.SlowLink(None, 300.0, **TRANSFER, peak_gbps=450.0, share=0.1, groups=1),
    findings.SlowGroup(None, 300.0, **TRANSFER, usual_gbps=90.0, groups=3),
    findings.UnevenSplit(2, None, times=2.0, sent=1152, received=2304, count=3),
    findings.SmallCollectives(None, None, count=60, bytes=65536),
)


def test_every_finding_is_here() -> None:
    assert {*map(type, EVERY)} == {*RankFinding.classes.values()}


@pytest.mark.parametrize("code", RankFinding.classes)
def test_a_finding_says(code: str, snapshot: SnapshotAssertion) -> None:
    found = [each for each in EVERY if each.code == code]
    assert [(each.title(), each.long()) for each in found] == snapshot


def test_something_is_to_be_done_about_every_finding(snapshot: SnapshotAssertion) -> None:
    advice = {each.code: (each.to_do(), each.why, each.command) for each in EVERY}
    assert [code for code, (what, *_) in advice.items() if not what] == ["late_rank"]
    assert advice == snapshot


def test_what_costs_much_is_a_warning() -> None:
    severities = [(each.code, each.severity) for each in EVERY]
    assert [code for code, severity in severities if severity == "info"] == [
        "slow_host",
        "held_up",
        "lone_sync",
        "uneven_split",
        "small_collectives",
    ]
    assert findings.LateRank(1, 900.0, **LATE | {"share": 0.009}).severity == "info"
