from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from tracekit.model.analysis import Health
from tracekit.statements import health as health

#: Facts of each finding, as analysis/health.py gives them; the others have none.
FACTS: dict[str, tuple[dict[str, Any], ...]] = {
    "truncated": ({}, {"recording": "rich"}),
    "skipped_events": ({"reasons": {"negative duration": 1, "no time": 2}},),
    "python_stacks_recorded": ({"host_slower_up_to": 4},),
    "no_gpu_activity": ({"host_calls": 0}, {"host_calls": 3}),
    "several_processes": ({"shared_gpus": []}, {"shared_gpus": [0, 3]}),
    "coarse_times": ({"exact_to_us": 0.256},),
    "implausible_times": (
        {"longest": "activity", "longest_us": 3e9, "times_the_next": 1.5e6},
        {"longest": "gap", "longest_us": 3e9, "times_the_next": 1.5e6},
    ),
    "clock_disorder": ({"early_by_up_to_us": 5.04},),
    "launches_without_kernels": ({"in_the_middle": 0}, {"in_the_middle": 1234}),
    "slow_first_step": ({"times_the_others": 3.04},),
    "overlapping_kernels": ({"overlap_up_to_us": 1234.5},),
    "whole_trace": ({"spans": []}, {"spans": ["forward", "backward"]}),
    "empty_steps": ({"empty_steps": 2, "steps": 3},),
    "overlapping_steps": ({"overlap_us": 5.0},),
    "work_from_outside": ({"outside_us": 10.0},),
}


@pytest.mark.parametrize("code", Health.classes)
def test_every_finding_is_said_in_a_sentence(code: str, snapshot: SnapshotAssertion) -> None:
    assert [Health.classes[code](1, **facts).long() for facts in FACTS.get(code, ({},))] == snapshot
