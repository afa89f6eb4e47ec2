"""The wording of every finding, as a snapshot that a person reads when it changes."""

from typing import Any

import pytest
from msgspec.structs import replace
from syrupy.assertion import SnapshotAssertion
from tests.model.test_model import CHECKS

from tracekit.model.advice import Action, ActionCode, VerifiedAdvice
from tracekit.model.comparison import Finding
from tracekit.model.compilation import FailedGuard
from tracekit.report.words.findings import IN_CODE, WORDS, finding_advice, finding_evidence, finding_title
from tracekit.report.words.findings.compiling import check_sentence
from tracekit.report.words.short import IN_CODE as IN_CODE_BRIEFLY
from tracekit.report.words.short import advice_words
from tracekit.statements.accuracy import Difference
from tracekit.statements.evidence import ChannelsMovedLast

CHECK = {"kind": "size", "name": "x", "index": "0", "then": "1", "now": "4"}
ITEM = {"line": "model.py:20", "reason": "Unsupported Tensor.item()", "per_step_us": 9.0, "cost_us": 3.0}
BREAK = {**ITEM, "hint": "Keep it a tensor.", "steers_branch": False}
STEERING = {**BREAK, "hint": None, "steers_branch": True}
NO_LINE = {**BREAK, "line": None, "per_step_us": None, "cost_us": None, "hint": None}
BROKEN = {"lines": 1, "longest": [BREAK], "counted_by_dynamo": 0, "on_gpu": True}
MORE_BROKEN = {"lines": 5, "longest": [STEERING, NO_LINE], "counted_by_dynamo": 23, "on_gpu": False}
WARM = {"startup_us": 2e7, "calls": 1500.0, "calls_at_most": 1600.0, "calls_ci95": None}
SAVED = {"call_saving_us": 200.0, "medians_apart_us": 200.0, "warm_was_measured": True, "can_be_regional": True}
COLD = {
    "startup_us": 6e7,
    "calls": 5000.0,
    "calls_at_most": None,
    "calls_ci95": (4810.2, 5200.0),
    "warm": WARM,
    **SAVED,
}
NOT_WARM = {"medians_apart_us": 150.0, "warm": None, "warm_was_measured": False, "can_be_regional": False}
AGAIN = {"times": 1, "function": None, "where": None, "failed_check": CHECK, "dearest_s": 3.0, "whole_s": 3.0}
TWICE = {"times": 2, "function": "forward", "where": "model.py:12", "dearest_s": 45.0, "whole_s": 45.5}
PART = {"kind": "recompile_limit", "function": "forward", "where": "model.py:12", "reason": "Limit exceeded"}
SKIPPED, FAILED = {**PART, "kind": "skipped", "where": None}, {**PART, "kind": "error", "function": None}
CALL = {"call": 1, "wall_us": 12.3e6, "failed_checks": [CHECK], "cuda_graphs": 0}
GRAPHS = {"call": 2, "wall_us": None, "failed_checks": [], "cuda_graphs": 2}
WARMED = {"warmed_up_at": {"batch_size": 1}, "any_size": False, "failed_for_one": False}
RECOMPILED: dict[str, Any] = {"compilations": 1, "calls": 1, "first": [CALL], "cost_us": 12.2e6, **WARMED}
GRAPHED = {"a_launches": 37.0, "b_launches": 2.0, "graphed_share": 0.95}
READ = {"read": 1, "read_before": 0, "before": "eager"}
SINGLE = {"products": 1.0, "operators": ["aten::bmm"], "products_us": 80.0, "busy_us": 800.0, **READ}
LOST = {"a": "eager", "b": "compiled", "attention_before_us": 100.0, "attention_after_us": 0.0}
DIFFERENCE = Difference("", compiled=0.07, allowed=0.06)
MADE_AT = {"place": {"operator": "aten::copy_", "module": None, "line": None}, "lines": {}, "in_eager_code": False}
COPIED = {"copies": 1.0, "copy_us": 3.0, "idle_us": 100.0, "call_us": 1300.0, "made_by": [MADE_AT]}
SLOWED = {"side": "compiled", "slowdown": 2.71}
MUTATED = {"reason": "mutated inputs", "times": 3}
CONVOLVED = {"convolutions": 2, "before_us": 1200.0, "after_us": 6000.0, "shown_by": [ChannelsMovedLast()]}
LAID_OUT = {**CONVOLVED, "laid_out_by_inductor": True}
ASKED = [{"operator": "aten::item", "called_at": f"model.py:{line}"} for line in (12, 14)]
WAITED = {"times": 2.0, "calls": ["cudaStreamSynchronize"], "idle_us": 120.0, "call_us": 1300.0, "made_by": ASKED}
FUSIBLE = {"component": "vae", "partly_compiled": False, "fusible_us": 60.0, "busy_us": 863.0, "kept_share": 0.25}

#: Facts of every finding, more than once where words differ with them; each is of the compiled side.
FACTS: dict[str, tuple[dict[str, Any], ...]] = {
    "broken_graphs": (
        {**BROKEN, "can_be_switched": False},
        {**MORE_BROKEN, "can_be_switched": True},
    ),
    "cold_start": (COLD, {**COLD, **NOT_WARM}),
    "compile_slower": ({"a_wall_us": 1000.0, "b_wall_us": 1500.0},),
    "compiled_again": (AGAIN, {**AGAIN, **TWICE}),
    "eager_fallback": (
        {"part": None, "ran_eager": True, "eager_gpu_share": 1.0},
        {"part": SKIPPED, "ran_eager": False, "eager_gpu_share": None},
        {"part": FAILED, "ran_eager": False, "eager_gpu_share": 0.75},
    ),
    "fewer_kernels": ({"a_kernels": 37.0, "b_kernels": 22.0, "a_busy_us": 863.0, "b_busy_us": 709.0},),
    "graphed_launches": ({**GRAPHED, "idle_change_us": -300.0}, {**GRAPHED, "idle_change_us": None}),
    "launch_bound": ({"wall_us": 1000.0, "idle_us": 500.0, "host_share": 0.95, "launching_share": 0.9},),
    "little_compiled": (
        {"compiled_share": 0.2, "busy_us": 709.0, "scope": "transformer"},
        {"compiled_share": 0.2, "busy_us": None, "scope": None},
    ),
    "lost_attention": (
        {**LOST, "products_more_us": 255.0, "in_float32": True},
        {**LOST, "products_more_us": -1.0, "in_float32": False},
    ),
    "more_gpu_time": ({"a_busy_us": 863.0, "b_busy_us": 964.0, "a_kernels": 37.0, "b_kernels": 38.0},),
    "outputs_differ": ({"a": "eager", "b": "compiled", "reason": DIFFERENCE},),
    "pageable_copies": (COPIED, {**COPIED, "copies": 2.0, "made_by": []}),
    "profiler_distortion": (
        {"slowed": [{"side": "eager", "slowdown": 1.5}, SLOWED], "on_gpu": True},
        {"slowed": [SLOWED], "on_gpu": False},
    ),
    "recompile_limit": ({"part": PART, "ran_eager": False, "eager_gpu_share": 0.75},),
    "recompiled_during_timing": (
        RECOMPILED,
        {**RECOMPILED, "calls": 0, "first": [], "cost_us": None, "compilations": 3},
        {**RECOMPILED, "calls": 5, "warmed_up_at": {}, "any_size": True, "failed_for_one": True},
        {**RECOMPILED, "first": [GRAPHS], "cost_us": None, "any_size": True},
        {**RECOMPILED, "first": [{**CALL, "failed_checks": []}], "warmed_up_at": {}},
    ),
    "single_precision": (SINGLE, {**SINGLE, "read_before": 1}, {**SINGLE, "read_before": 1, "before": None}),
    "skipped_cuda_graphs": (
        {"graphed_share": 0.3, "skips": []},
        {"graphed_share": 0.0, "skips": [MUTATED, {"reason": None, "times": 1}]},
        {"graphed_share": None, "skips": [MUTATED]},
    ),
    "slower_attention": ({"before_us": 100.0, "after_us": 220.0, "shown_by": []},),
    "slower_convolutions": (
        *({**LAID_OUT, "others_gained_us": gained_us} for gained_us in (500.0, 9000.0, -100.0)),
        {**CONVOLVED, "convolutions": 1, "shown_by": [], "laid_out_by_inductor": False, "others_gained_us": None},
    ),
    "small_kernels": ({"small_us": 600.0, "whole_us": 1000.0},),
    "synchronising_calls": (
        WAITED,
        {**WAITED, "calls": ["cudaStreamSynchronize", "cudaEventSynchronize"], "made_by": []},
    ),
    "uncompiled_component": (FUSIBLE, {**FUSIBLE, "component": "encoder", "partly_compiled": True}),
}


def test_a_switch_promises_to_remove_a_break_only_as_a_possibility_until_it_was_tried():
    facts = {**BROKEN, "can_be_switched": True, "costly": True}
    untried = Finding("broken_graphs", "warning", facts, environment={"TORCHDYNAMO_X": "1"})
    verified = VerifiedAdvice("broken_graphs", "command", 900.0, 900.0, 1000.0, 1.1, None, 5, None)
    (words, why), (same, tried) = advice_words(untried), advice_words(replace(untried, verified=verified))
    assert words == same == "TORCHDYNAMO_X=1"
    assert "may" in why.split() and "may" not in tried.split()


def test_every_finding_is_here():
    assert set(FACTS) == set(WORDS)


@pytest.mark.parametrize("code", FACTS)
def test_a_finding_says(code: str, snapshot: SnapshotAssertion):
    side = {} if code == "profiler_distortion" else {"side": "compiled"}
    findings = [Finding(code, "warning", {**side, **facts}, None) for facts in FACTS[code]]
    assert [(finding_title(each), finding_evidence(each)) for each in findings] == snapshot


def test_an_action_is_its_command_or_what_to_change(snapshot: SnapshotAssertion):
    def advised(action: Action | None) -> str | None:
        return finding_advice(Finding("launch_bound", "warning", {}, None, action))

    assert [advised(Action(code)) for code in IN_CODE] == snapshot
    assert advised(Action("run_again", "tracekit profile vit")) == "tracekit profile vit"
    assert advised(None) is None


def test_a_failed_check_is_told_in_words_without_addresses(snapshot: SnapshotAssertion) -> None:
    assert {text: check_sentence(FailedGuard("0/0", text).facts) for text in CHECKS} == snapshot


@pytest.mark.parametrize("code", IN_CODE_BRIEFLY)
def test_every_action_has_short_words(code: ActionCode) -> None:
    words, _ = advice_words(Finding("little_compiled", "info", {}, action=Action(code)))
    assert words and code not in words
