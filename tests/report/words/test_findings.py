"""The wording of every finding, as a snapshot that a person reads when it changes."""

from __future__ import annotations

from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion
from tests.model.test_model import CHECKS

from tracekit.model.advice import Action
from tracekit.model.comparison import Finding
from tracekit.model.compilation import FailedGuard
from tracekit.report.words.findings import IN_CODE, WORDS, action_words, finding_advice, finding_evidence, finding_title
from tracekit.report.words.findings.compiling import guard_sentence

MOVED = {"kind": "channels_moved_last", "facts": {}}
BREAK = {"line": "model.py:20", "reason": "Unsupported Tensor.item()", "per_step_us": 9.0}
CONVOLVED = {"convolutions": 2, "before_us": 1200.0, "after_us": 6000.0, "shown_by": [MOVED]}
EAGER_PART = {"kind": "recompile_limit", "function": "forward", "where": "model.py:12", "reason": "Limit exceeded"}
COLD = {
    "startup_us": 6e7,
    "calls": 5000.0,
    "calls_at_most": None,
    "call_saving_us": 200.0,
    "medians_apart_us": 200.0,
    "warm": {"startup_us": 2e7, "calls": 1500.0, "calls_at_most": 1600.0},
    "warm_was_measured": True,
    "can_be_regional": True,
}
CHECK = {"kind": "size", "name": "x", "index": "0", "then": "1", "now": "4"}
MADE_AT = {"place": {"operator": "aten::copy_", "module": None, "line": None}, "lines": {}, "in_eager_code": False}
CALL = {"call": 1, "wall_us": 12.3e6, "failed_checks": [CHECK], "cuda_graphs": 0}
RECOMPILED: dict[str, Any] = {
    "side": "compiled",
    "compilations": 1,
    "calls": 1,
    "first": [CALL],
    "cost_us": 12.2e6,
    "warmed_up_at": {"batch_size": 1},
    "any_size": False,
    "failed_for_one": False,
}
GRAPHED = {"a_launches": 37.0, "b_launches": 2.0, "graphed_share": 0.95, "side": "compiled"}
SINGLE = {
    "side": "compiled",
    "products": 1.0,
    "operators": ["aten::bmm"],
    "products_us": 80.0,
    "busy_us": 800.0,
    "read": 1,
    "read_before": 0,
    "before": "eager",
}
LOST = {"a": "eager", "b": "compiled", "attention_before_us": 100.0, "attention_after_us": 0.0}

#: Facts of every finding, more than once where words differ with them.
FACTS: dict[str, tuple[dict[str, Any], ...]] = {
    "broken_graphs": (
        {
            "side": "compiled",
            "lines": 1,
            "longest": [BREAK],
            "hints": ["Keep it a tensor."],
            "counted_by_dynamo": 0,
            "can_be_switched": False,
        },
        {
            "side": "compiled",
            "lines": 5,
            "longest": [BREAK, {**BREAK, "line": None, "per_step_us": None}],
            "hints": [],
            "counted_by_dynamo": 23,
            "can_be_switched": True,
        },
    ),
    "cold_start": (
        COLD,
        {**COLD, "medians_apart_us": 150.0, "warm": None, "warm_was_measured": False, "can_be_regional": False},
    ),
    "compile_slower": ({"a_wall_us": 1000.0, "b_wall_us": 1500.0},),
    "compiled_again": (
        {
            "side": "compiled",
            "times": 1,
            "function": None,
            "where": None,
            "failed_check": CHECK,
            "dearest_s": 3.0,
            "whole_s": 3.0,
        },
        {
            "side": "compiled",
            "times": 2,
            "function": "forward",
            "where": "model.py:12",
            "failed_check": CHECK,
            "dearest_s": 45.0,
            "whole_s": 45.5,
        },
    ),
    "eager_fallback": (
        {"side": "compiled", "part": None, "ran_eager": True, "eager_gpu_share": 1.0},
        {
            "side": "compiled",
            "part": {**EAGER_PART, "kind": "skipped", "where": None},
            "ran_eager": False,
            "eager_gpu_share": None,
        },
        {
            "side": "compiled",
            "part": {**EAGER_PART, "kind": "error", "function": None},
            "ran_eager": False,
            "eager_gpu_share": 0.75,
        },
    ),
    "fewer_kernels": ({"a_kernels": 37.0, "b_kernels": 22.0, "a_busy_us": 863.0, "b_busy_us": 709.0},),
    "graphed_launches": ({**GRAPHED, "idle_change_us": -300.0}, {**GRAPHED, "idle_change_us": None}),
    "launch_bound": ({"wall_us": 1000.0, "idle_us": 500.0, "host_share": 0.9},),
    "little_compiled": (
        {"side": "compiled", "compiled_share": 0.2, "busy_us": 709.0, "scope": "transformer"},
        {"side": "compiled", "compiled_share": 0.2, "busy_us": None, "scope": None},
    ),
    "lost_attention": (
        {**LOST, "products_more_us": 255.0, "in_float32": True},
        {**LOST, "products_more_us": -1.0, "in_float32": False},
    ),
    "more_gpu_time": (
        {"side": "compiled", "a_busy_us": 863.0, "b_busy_us": 964.0, "a_kernels": 37.0, "b_kernels": 38.0},
    ),
    "outputs_differ": (
        {
            "a": "eager",
            "b": "compiled",
            "reason": {"code": "difference", "facts": {"path": "", "compiled": 0.07, "allowed": 0.06}},
        },
    ),
    "pageable_copies": (
        {"side": "compiled", "copies": 1.0, "copy_us": 3.0, "idle_us": 100.0, "call_us": 1300.0, "made_by": [MADE_AT]},
        {"side": "compiled", "copies": 2.0, "copy_us": 3.0, "idle_us": 100.0, "call_us": 1300.0, "made_by": []},
    ),
    "profiler_distortion": (
        {"slowed": [{"side": "eager", "slowdown": 1.5}, {"side": "compiled", "slowdown": 2.71}], "on_gpu": True},
        {"slowed": [{"side": "compiled", "slowdown": 2.71}], "on_gpu": False},
    ),
    "recompile_limit": ({"side": "compiled", "part": EAGER_PART, "ran_eager": False, "eager_gpu_share": 0.75},),
    "recompiled_during_timing": (
        RECOMPILED,
        {**RECOMPILED, "calls": 0, "first": [], "cost_us": None, "compilations": 3},
        {**RECOMPILED, "calls": 5, "warmed_up_at": {}, "any_size": True, "failed_for_one": True},
        {
            **RECOMPILED,
            "first": [{"call": 2, "wall_us": None, "failed_checks": [], "cuda_graphs": 2}],
            "cost_us": None,
            "any_size": True,
        },
        {**RECOMPILED, "first": [{**CALL, "failed_checks": []}], "warmed_up_at": {}},
    ),
    "single_precision": (SINGLE, {**SINGLE, "read_before": 1}, {**SINGLE, "read_before": 1, "before": None}),
    "skipped_cuda_graphs": (
        {"graphed_share": 0.3, "skips": []},
        {"graphed_share": 0.0, "skips": [{"reason": "mutated inputs", "times": 3}, {"reason": None, "times": 1}]},
        {"graphed_share": None, "skips": [{"reason": "mutated inputs", "times": 3}]},
    ),
    "slower_attention": ({"before_us": 100.0, "after_us": 220.0, "shown_by": []},),
    "slower_convolutions": (
        {**CONVOLVED, "laid_out_by_inductor": True, "others_gained_us": 500.0},
        {**CONVOLVED, "laid_out_by_inductor": True, "others_gained_us": 9000.0},
        {**CONVOLVED, "laid_out_by_inductor": True, "others_gained_us": -100.0},
        {**CONVOLVED, "convolutions": 1, "shown_by": [], "laid_out_by_inductor": False, "others_gained_us": None},
    ),
    "synchronising_calls": (
        {
            "side": "compiled",
            "times": 2.0,
            "calls": ["cudaStreamSynchronize"],
            "idle_us": 120.0,
            "call_us": 1300.0,
            "made_by": [{"operator": "aten::item", "called_at": f"model.py:{line}"} for line in (12, 14)],
        },
        {
            "side": "compiled",
            "times": 2.0,
            "calls": ["cudaStreamSynchronize", "cudaEventSynchronize"],
            "idle_us": 120.0,
            "call_us": 1300.0,
            "made_by": [],
        },
    ),
    "uncompiled_component": (
        {"component": "vae", "partly_compiled": False, "fusible_us": 60.0, "busy_us": 863.0, "kept_share": 0.25},
        {"component": "encoder", "partly_compiled": True, "fusible_us": 60.0, "busy_us": 863.0, "kept_share": 0.25},
    ),
}


def test_every_finding_is_here():
    assert set(FACTS) == set(WORDS)


@pytest.mark.parametrize("code", FACTS)
def test_a_finding_says(code: str, snapshot: SnapshotAssertion):
    findings = [Finding(code, "warning", facts, None) for facts in FACTS[code]]
    assert [(finding_title(each), finding_evidence(each)) for each in findings] == snapshot


def test_an_action_is_its_command_or_what_to_change(snapshot: SnapshotAssertion):
    assert [action_words(Action(code)) for code in IN_CODE] == snapshot
    run = Finding("launch_bound", "warning", {}, None, Action("run_again", "tracekit profile vit"))
    assert finding_advice(run) == "tracekit profile vit"
    assert finding_advice(Finding("launch_bound", "warning", {}, None)) is None


def test_a_failed_check_is_told_in_words_without_addresses(snapshot: SnapshotAssertion) -> None:
    assert {text: guard_sentence(FailedGuard("0/0", text)) for text in CHECKS} == snapshot
