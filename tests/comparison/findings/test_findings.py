import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace
from tests.sequences import make_activity, make_sequence
from tests.sides import (
    COMPILED,
    EAGER,
    ORDER,
    STEADY,
    command_of,
    make_analysis,
    make_cpu_analysis,
    make_form,
    make_pair,
    make_settings,
    make_side,
    scaled,
)
from tests.traces import VIT

from tracekit.comparison.comparing import compare
from tracekit.comparison.cost.bound import find_bound
from tracekit.comparison.findings import find_of_one_side
from tracekit.comparison.findings.eager_code import find_uncompiled_component
from tracekit.comparison.findings.slower_kernels import find_lost_attention
from tracekit.comparison.findings.times import find_cold_start
from tracekit.comparison.waiting import with_waiting_lines
from tracekit.model.analysis import IdleGap, Place, SyncTime
from tracekit.model.comparison import Comparison, Finding, GroupMember, KernelGroup, Side
from tracekit.model.compilation import CompiledRegions
from tracekit.model.provenance import EagerOp, EagerOps, TaggedActivity
from tracekit.model.run import Component
from tracekit.model.sequence import Activity, Operator, Sequence
from tracekit.model.statement import Severity
from tracekit.model.timing import BreakEven
from tracekit.statements.advice import CompileLayers, KeepOnGpu, PinMemory, RunAgain
from tracekit.statements.findings.kernels import FewerKernels, SlowerAttention
from tracekit.statements.findings.waiting import MadeAt, OperatorCall

LOST = {"gemm_128x64": ("gemm", 20, 1010.0), "bmm_f32": ("gemm", 8, 500.0), "triton_a": ("triton", 10, 110.0)}


def found(a: Side, b: Side, order: tuple[str, ...] = ORDER) -> dict[str, Finding]:
    return {finding.code: finding for finding in compare(a, b, order).findings}


def eager(kernels=EAGER, wall_us: tuple[float, ...] = STEADY) -> Side:
    return make_side("eager", make_analysis(kernels), make_form("eager", wall_us))


def compiled(kernels=COMPILED, wall_us: tuple[float, ...] = STEADY, **analysis: object) -> Side:
    return make_side("compiled", make_analysis(kernels, **analysis), make_form("compiled", wall_us))


def test_attention_lost_to_products_is_found_with_its_cost():
    finding = found(eager(), compiled(LOST))["lost_attention"]
    assert finding.saving_us == pytest.approx((1510 - 1000) / 2 - 200 / 2)
    assert (finding.statement.a, finding.statement.attention_before_us) == ("eager", 100.0)
    # Where the products take 25 or 100 us a step longer, and the attention took 100, nothing is to be saved.
    for product_us in (550.0, 700.0):
        kernels = {**LOST, "gemm_128x64": ("gemm", 20, product_us)}
        assert found(eager(), compiled(kernels))["lost_attention"].saving_us is None
    # Attention that was never there or is half there is not lost.
    without = {name: each for name, each in EAGER.items() if each[0] != "attention"}
    assert "lost_attention" not in found(eager(without), compiled(LOST))
    for us, lost in ((100.0, False), (10.0, True)):
        kernels = {**EAGER, "gemm_128x64": ("gemm", 20, 1400.0), "flash_fprop": ("attention", 2, us)}
        assert ("lost_attention" in found(eager(), compiled(kernels))) is lost


BLOCKS = ("transformer.transformer_blocks.*",)


def with_attention(us: float, count: int = 4, name: str = "flash_fprop") -> Side:
    others = {key: each for key, each in COMPILED.items() if each[0] != "attention"}
    return replace(compiled({**others, name: ("attention", count, us)}), repeated_parts=BLOCKS)


def test_attention_that_is_kept_and_takes_longer_is_found_with_its_cost():
    finding = found(eager(), with_attention(440))["slower_attention"]
    assert finding.saving_us == pytest.approx((440 - 200) / 2)
    assert finding.statement == SlowerAttention(100.0, 220.0, ())
    # FLUX has the scope that compiles its blocks one by one, and --verify-advice can try it.
    assert finding.changes == {"scope": "regional"}
    assert "--scope regional" in command_of(finding)
    assert "slower_attention" in found(eager(), with_attention(440, name="fmha_cutlassF"))


def test_attention_that_takes_about_as_long_or_hardly_any_time_is_not_slower():
    for before_us, us in ((200, 200), (200, 240), (200, 20), (4, 12)):
        a = eager({**EAGER, "flash_fprop": ("attention", 4, before_us)})
        assert "slower_attention" not in found(a, with_attention(us))


SDPA, FLASH = "_scaled_dot_product_cudnn_attention", "_flash_attention_forward"


def attending(query: tuple[int, ...], key: tuple[int, ...], us: float, within: str = SDPA) -> Side:
    """A side that only attends, for `us` microseconds."""
    call = make_activity("flash_fprop", "attention", within, (query, key, key), 0, us)
    return replace(compiled({"flash_fprop": ("attention", 2, 2 * us)}), sequence=make_sequence([call]))


@pytest.mark.parametrize(
    ("query", "key", "within", "slower"),
    [
        ((1, 4, 64, 8), (1, 4, 64, 8), SDPA, True),
        # The same queries on more keys, laid out in another order, or with batch and heads as one.
        ((1, 4, 64, 8), (1, 8, 64, 8), SDPA, True),
        ((1, 64, 4, 8), (1, 64, 4, 8), FLASH, True),
        ((4, 64, 8), (4, 64, 8), FLASH, True),
        # Another batch, length, or number of heads: other work.
        ((8, 4, 64, 8), (8, 4, 64, 8), SDPA, False),
        ((1, 4, 96, 8), (1, 4, 96, 8), SDPA, False),
        ((1, 6, 64, 8), (1, 6, 64, 8), SDPA, False),
        ((8, 64, 8), (8, 64, 8), FLASH, False),
    ],
)
def test_attention_is_slower_only_where_the_queries_have_the_same_sizes(query, key, within: str, slower: bool):
    a, b = attending((1, 4, 64, 8), (1, 4, 64, 8), 100.0), attending(query, key, 220.0, within)
    assert ("slower_attention" in found(a, b)) is slower


def test_attention_is_answered_with_the_scope_that_keeps_it_or_the_line_of_code():
    def answer(scope: str, *repeated: str) -> Finding:
        settings = make_settings(workload="vit", scope=scope)
        b = replace(with_attention(440), settings=settings, repeated_parts=repeated)
        return found(eager(), b)["slower_attention"]

    again, layers, regional = answer("model", "model.vit.layers.*"), answer("model"), answer("regional")
    assert isinstance(again.advice, RunAgain) and "--scope regional" in command_of(again)
    assert (layers.advice, regional.advice) == (CompileLayers(), None)
    assert [each.changes for each in (again, layers, regional)] == [{"scope": "regional"}, {}, {}]


def test_attention_that_became_kernels_of_inductor_s_own_is_lost_too(compared):
    comparison = compared(VIT)
    (finding,) = (each for each in comparison.findings if each.code == "lost_attention")
    lost = [comparison.groups[at] for at in finding.groups]
    assert finding.saving_us == pytest.approx(sum(each.delta_us for each in lost)) and lost[0].kind == "defused"
    # Also where no product is known by its family.
    b = comparison.b
    families = tuple(each for each in b.analysis.kernels.by_family if each.family != "gemm")
    kernels = replace(b.analysis.kernels, by_family=families)
    again = find_lost_attention(replace(comparison, b=replace(b, analysis=replace(b.analysis, kernels=kernels))))
    assert again.saving_us == finding.saving_us
    assert again.statement.products_more_us <= 0


def test_a_gpu_that_waits_for_launches_is_told_to_use_graphs():
    finding = found(eager(), compiled(wall_us=scaled(2), idle_us=3000.0))["launch_bound"]
    # All idle time: what is beyond the recorded 1,500 us nothing explains, and may be launching too.
    assert finding.saving_us == pytest.approx(2001 - 1418 / 2, rel=1e-3)
    assert command_of(finding).startswith("tracekit profile flux --compiled --mode reduce-overhead")
    # One that waits for synchronisation, or uses graphs, is not launch-bound.
    for other in ({"causes": {"sync_wait": 0.9, "op_dispatch": 0.1}}, {"graph_launches": 2}):
        assert "launch_bound" not in found(eager(), compiled(wall_us=scaled(2), idle_us=3000.0, **other))
    # Nor is one whose recording shows hardly any of it.
    assert "launch_bound" not in found(eager(), compiled(wall_us=scaled(2)))


def test_a_slower_compiled_form_is_told_with_its_cost():
    finding = found(eager(), compiled(wall_us=scaled(1.5)))["compile_slower"]
    assert finding.saving_us == pytest.approx(500.125)
    assert "--mode reduce-overhead" in command_of(finding)
    on_cpu = replace(compiled(wall_us=scaled(1.5)), settings=make_settings(device="cpu"))
    assert found(eager(), on_cpu)["compile_slower"].advice is None
    # More work was recorded than fits into a call: nobody knows how long the GPU waits.
    side = compiled({"gemm": ("gemm", 2, 10_000.0)}, scaled(1.5))
    assert side.unprofiled_idle_us is None
    assert "--mode reduce-overhead" in command_of(found(eager(), side)["compile_slower"])


def test_fewer_kernels_are_told_with_what_they_did_to_gpu_time_and_a_recording_that_slowed_its_calls():
    findings = found(eager(), compiled(idle_us=4000))
    assert findings["fewer_kernels"].statement == FewerKernels(37, 22, 863.0, 709.0)
    distortion = findings["profiler_distortion"].statement
    assert distortion.on_gpu
    assert {each.side: each.slowdown for each in distortion.slowed}["compiled"] == pytest.approx(2.71, abs=0.005)


def test_kernels_too_small_to_fill_the_gpu_are_told_where_they_are_most_of_a_call():
    small = Activity("vectorized", "pointwise", 2.0, Operator("aten::add", ((8, 8),) * 2, ("float",) * 2))
    side, sequence = compiled(idle_us=100), Sequence((small,), 1.0, "own")
    bound = find_bound(replace(side, sequence=sequence))
    told = {each.code: each for each in find_of_one_side(replace(side, bound=bound))}
    finding = told["small_kernels"]
    assert (finding.severity, finding.saving_us, finding.statement.side) == ("info", None, "compiled")
    assert finding.statement.small_us == pytest.approx(side.busy_us)
    assert "small_kernels" not in {each.code for each in find_of_one_side(replace(side, bound=find_bound(side)))}


def test_gpu_time_that_grew_by_more_than_recordings_differ_by_is_told_without_a_saving():
    near, far = ({name: (*of, factor * us) for name, (*of, us) in EAGER.items()} for factor in (1.04, 1.06))
    assert "more_gpu_time" not in found(eager(), compiled(near))
    finding = found(eager(), compiled(far))["more_gpu_time"]
    # Where it went, and what that costs, the groups say.
    assert (finding.severity, finding.saving_us) == ("warning", None)
    assert finding.statement.b_busy_us == pytest.approx(1.06 * finding.statement.a_busy_us)


def test_graphs_that_take_over_launching_are_told():
    graphed = compiled(graph_launches=2)
    statement = found(eager(), graphed)["graphed_launches"].statement
    assert statement.side == "compiled" and statement.graphed_share is not None
    assert "graphed_launches" not in found(graphed, graphed)


def test_the_graver_stand_first_and_of_those_what_may_save_most(monkeypatch: pytest.MonkeyPatch):
    def finder(code: str, severity: Severity, saving_us: float | None) -> Callable[[object], Finding]:
        return lambda _: Finding(SimpleNamespace(code=code, severity=severity), saving_us)

    told, broken = finder("told", "info", 900.0), finder("broken", "error", None)
    savings = {"small": 10.0, "unknown": None, "large": 500.0}
    warnings = (finder(code, "warning", saving_us) for code, saving_us in savings.items())
    monkeypatch.setattr("tracekit.comparison.findings.DOUBTING", (finder("doubt", "info", None),))
    monkeypatch.setattr("tracekit.comparison.findings.FINDERS", (told, *warnings, broken))
    order = [finding.code for finding in compare(*make_pair(scaled(1.5), scaled(0.9)), ORDER).findings]
    assert order == ["doubt", "broken", "large", "small", "unknown", "told"]


COLD = BreakEven("compiled_no_cache", "fresh_process", 6e7, 6e7, 1e6, 5000.0, (4500.0, 6000.0))
WARM = BreakEven("compiled_warm_cache", "fresh_process", 2e7, 2e7, 1e6, 1500.0, (1400.0, 1700.0), 3, 3)


def started(*starts: BreakEven, scope: str = "transformer") -> Comparison:
    comparison = compare(*make_pair(STEADY, scaled(0.8)), ORDER)
    side = replace(comparison.b, settings=make_settings(scope=scope), repeated_parts=BLOCKS)
    return replace(comparison, b=side, break_even=starts)


def test_a_dear_start_is_told_with_the_calls_it_takes_and_what_a_cache_makes_of_it():
    finding = find_cold_start(started(COLD, WARM))
    assert (finding.statement.calls, finding.statement.startup_us) == (5000.0, 6e7)
    assert finding.statement.call_saving_us == pytest.approx(200, abs=0.1)
    assert (finding.statement.warm.startup_us, finding.statement.warm.calls) == (2e7, 1500.0)
    # It is no saving of a call.
    assert (finding.saving_us, finding.start_saving_us) == (None, pytest.approx(4e7))
    assert finding.statement.warm_was_measured
    assert "--scope regional" in command_of(finding)


def test_a_smaller_scope_is_advised_where_the_model_has_one():
    comparison = started(COLD)
    side = replace(comparison.b, settings=make_settings(workload="causal-lm", scope="model"))
    finding = find_cold_start(replace(comparison, b=side))
    assert "--scope regional" in command_of(finding) and finding.statement.can_be_regional
    for other in (started(COLD, scope="regional"), replace(comparison, b=replace(side, repeated_parts=()))):
        finding = find_cold_start(other)
        assert (finding.advice, finding.statement.can_be_regional) == (None, False)


def test_a_start_that_pays_soon_or_is_short_or_never_pays_or_is_warm_is_not_told():
    for changes in ({"calls": 99.0}, {"startup_us": 9e6}, {"calls": math.inf}, {"calls": None}):
        assert find_cold_start(started(replace(COLD, **changes))) is None
    assert find_cold_start(started(replace(WARM, calls=5000.0, startup_us=6e7))) is None


def test_what_a_warm_cache_saves_is_withheld_where_it_was_not_measured():
    measured_otherwise = (replace(COLD, source="warm_up"), WARM), (COLD, replace(WARM, cache_hits=0))
    for starts in ((COLD,), (replace(COLD, kind=None),), *measured_otherwise):
        finding = find_cold_start(started(*starts))
        assert (finding.start_saving_us, finding.statement.warm_was_measured) == (None, False)
    # A warm cache that is no faster saves nothing, which was measured.
    assert find_cold_start(started(COLD, replace(WARM, startup_us=7e7))).start_saving_us == 0


def test_each_call_saves_what_the_ratio_within_rounds_says():
    """Medians of a form that switches between two speeds need not differ by the same."""
    comparison = started(COLD, WARM)
    finding = find_cold_start(replace(comparison, verdict=replace(comparison.verdict, b_wall_us=1100.0)))
    assert finding.statement.call_saving_us == pytest.approx(200, abs=0.1)
    assert finding.statement.medians_apart_us != pytest.approx(200, abs=10)


NORM = "layer_norm"
PARTS = (Component("transformer", 10, True), Component("vae", 5, False))


def group(kind: str, a_us: float, b_us: float, *where: str, name: str = NORM) -> KernelGroup:
    a, b = ((GroupMember(name, 1, us),) for us in (a_us, b_us))
    return KernelGroup(kind, name, "provenance", a, b, 0, b_us - a_us, where)


FUSED = group("fused", 100.0, 25.0, "transformer.norm")


def comparison(*groups: KernelGroup, scope: str = "transformer", parts: tuple[Component, ...] = PARTS) -> Comparison:
    b = replace(compiled(EAGER, scaled(1.3)), components=parts, settings=make_settings(scope=scope))
    # Compiled code launched three quarters of GPU time, after half of the idle time.
    regions = CompiledRegions((), 2, 2, 0.0, 0.0, 1294.5, 1726.0, 0.0, 57, 76, 400.0)
    b = replace(b, analysis=replace(b.analysis, regions=regions))
    return replace(compare(eager(wall_us=scaled(1.5)), b), groups=groups)


def test_the_component_with_most_to_fuse_is_named_and_all_that_is_not_compiled_bounds_what_that_saves():
    both = comparison(FUSED, group("unchanged", 60.0, 60.0, "vae.decoder.norm"))
    finding = find_uncompiled_component(both)
    assert (finding.statement.component, finding.statement.partly_compiled) == ("vae", False)
    # A quarter of 863 us, and the idle time before it in two steps.
    assert (finding.saving_us, finding.statement.kept_share) == pytest.approx((863 / 4 + 400 / 2, 0.25))
    assert finding.groups == (1,)
    # Nobody knows, where nothing tells what compiled code launched.
    b = replace(both.b, analysis=replace(both.b.analysis, regions=None))
    assert find_uncompiled_component(replace(both, b=b)).saving_us is None
    assert finding.changes == {"scope": "all"}
    assert "--scope all" in command_of(finding)


PARTLY = (Component("model.encoder", 10, True, 6, ("model.encoder.layers.*",)), Component("model.head", 5, False, 0))
LEFT = "model.encoder.embeddings.norm"


def left(*where: str, us: float = 60.0, name: str = NORM) -> KernelGroup:
    return group("unchanged", us, us, *where, name=name)


LAYERS: dict[str, Any] = {"scope": "encoder.layers.*", "parts": PARTLY}


@pytest.mark.parametrize(
    ("groups", "how"),
    [
        # What the compiled part kept, products, little, and what is left where nothing was fused or all is compiled.
        ((FUSED, left("transformer.norm")), {}),
        ((FUSED, left("vae.decoder.conv", name="gemm_128x64")), {}),
        ((FUSED, left("vae.norm", us=20.0)), {}),
        ((left("vae.norm"),), {}),
        ((FUSED, left("vae.norm")), {"scope": "all"}),
        # Inside a compiled module, wholly or in part.
        ((FUSED, left("model.encoder.layers.3.norm")), LAYERS),
        ((FUSED, left(LEFT, "model.encoder.layers.3.norm")), LAYERS),
    ],
)
def test_what_another_component_would_not_gain_is_not_told(groups: tuple[KernelGroup, ...], how: dict[str, Any]):
    assert find_uncompiled_component(comparison(*groups, **how)) is None


def test_what_is_left_of_a_partly_compiled_model_is_told_by_component():
    # A name that only begins alike is another module's.
    encoder, head = ("model.encoder", True), ("model.head", False)
    for where, part in ((LEFT, encoder), ("model.encoder.layers2.norm", encoder), ("model.head.norm", head)):
        finding = find_uncompiled_component(comparison(FUSED, left(where), **LAYERS))
        assert (finding.statement.component, finding.statement.partly_compiled) == part


SCALAR, COPYING = (Place(name, None, None) for name in ("aten::_local_scalar_dense", "aten::copy_"))
ITEM = SyncTime("cudaStreamSynchronize", count=6, idle_after_us=240.0, place=SCALAR, drained=4)
END = SyncTime("cudaDeviceSynchronize", count=2, idle_after_us=0.0, place=None, drained=0)


def sides(*syncs: SyncTime, kernels=EAGER) -> tuple[Side, Side]:
    b = compiled(kernels, scaled(1.3))
    gap = IdleGap(0, 12.5, 60.0, {"sync_wait": 60.0}, None, "gemm", sync="cudaStreamSynchronize")
    idle = replace(b.analysis.idle, syncs=syncs, largest=(gap,))
    return eager(wall_us=scaled(1.5)), replace(b, analysis=replace(b.analysis, idle=idle))


def found_wait(a: Side, b: Side) -> Finding | None:
    return found(a, b, ()).get("synchronising_calls")


def test_a_wait_in_the_middle_of_a_call_is_found_with_what_it_costs():
    finding = found_wait(*sides(ITEM, END))
    # 240 us behind four waits in two steps.
    assert (finding.statement.times, finding.statement.idle_us, finding.saving_us) == pytest.approx((2, 120, 120))
    assert finding.statement.idle_us / finding.statement.call_us == pytest.approx(0.09, abs=0.005)
    assert finding.statement.made_by == (made_at(SCALAR),)
    assert [(place.start_us, place.duration_us) for place in finding.places] == [(12.5, 60.0)]
    # The wait at the end of a call, a short one and that of a copy are not told.
    for sync in (END, replace(ITEM, idle_after_us=50.0), replace(ITEM, call="cudaMemcpyAsync")):
        assert found_wait(*sides(sync)) is None


def made_at(place: Place, lines: dict[str, int] | None = None) -> MadeAt:
    return MadeAt(place, lines or {}, in_eager_code=lines is not None)


def test_the_line_is_named_where_the_eager_call_was_asked():
    a, b = sides(ITEM)
    op = EagerOp("aten._local_scalar_dense.default", "head", "model.py:12", (), 2, None)
    other = EagerOp("aten.add.Tensor", "head", "model.py:13", (), 2, None)
    finding = found_wait(replace(a, provenance=EagerOps(1, "2.13.0", (op, other, op))), b)
    assert finding.statement.made_by == (OperatorCall("aten::_local_scalar_dense", "model.py:12"),)


def test_lines_are_those_of_the_copies_that_eager_operators_launched():
    # Operators alone do not say which copies wait: what they launched does.
    to_copy, index = "aten._to_copy.default", "aten.index.Tensor"
    lines = enumerate((to_copy, to_copy, index, to_copy), 12)
    ops = tuple(EagerOp(name, "head", f"model.py:{line}", (), 2, None) for line, name in lines)
    ends = (("Device", "Pageable"), ("Pinned", "Device"), ("Device", "Pinned"), ("Device", "Device"))
    copies = zip(("DtoH", "HtoD", "DtoH", "DtoD"), ends, strict=True)
    activities = tuple(TaggedActivity(f"Memcpy {way} ({a} -> {b})", op) for op, (way, (a, b)) in enumerate(copies))
    a, b = sides(replace(ITEM, place=COPYING), END)
    eager = EagerOps(1, "2.13.0", ops, (*activities, activities[2]))
    finding = found_wait(replace(a, provenance=eager), b)
    assert finding.statement.made_by == (made_at(COPYING, {"model.py:14": 2, "model.py:12": 1}),)


def test_a_call_that_copies_by_itself_is_at_the_lines_of_pageable_copies():
    ops = tuple(EagerOp("aten._to_copy.default", "", f"model.py:{n}", (), 2, None) for n in range(6))
    told = tuple(TaggedActivity("Memcpy HtoD (Pageable -> Device)", n) for n in range(5))
    eager = EagerOps(1, "2.13.0", ops, (*told, TaggedActivity("Memcpy DtoH (Device -> Pinned)", 5)))
    a, b = sides(SyncTime("cudaMemcpyAsync", 6, 240.0, None, 4))
    _, other = with_waiting_lines(replace(a, provenance=eager), b)
    (sync,) = other.analysis.idle.syncs
    assert sync.lines == {f"model.py:{n}": 1 for n in range(5)}
    assert sync.in_eager_code
    assert with_waiting_lines(a, b) == (a, b)


COPY = SyncTime("cudaMemcpyAsync", count=2, idle_after_us=200.0, place=COPYING, drained=2)
PINNED = {"Memcpy HtoD (Pinned -> Device)": ("memcpy", 2, 6.0)}
NO_COPIES = {name: each for name, each in COMPILED.items() if each[0] != "memcpy"}


def pageable(*syncs: SyncTime, kernels=COMPILED) -> Finding | None:
    return found(*sides(*syncs, kernels=kernels), ()).get("pageable_copies")


def test_copies_that_hold_the_host_are_found_with_what_they_cost():
    finding = pageable(COPY)
    assert (finding.saving_us, finding.advice) == (pytest.approx(100), PinMemory())
    assert finding.statement.made_by == (made_at(COPYING),)
    assert (finding.statement.copies, finding.statement.copy_us) == (1, 3.0)
    # Copies that hold nobody up or are pinned, and waits that are no copies, are not told.
    assert pageable(replace(COPY, drained=0, idle_after_us=0.0)) is None
    assert pageable(replace(COPY, idle_after_us=20.0)) is None
    assert pageable(COPY, kernels={**NO_COPIES, **PINNED}) is None
    assert pageable(replace(COPY, call="cudaStreamSynchronize")) is None
    # Values that are read back are not mended by pinning.
    back = {**NO_COPIES, "Memcpy DtoH (Device -> Pageable)": ("memcpy", 2, 6.0)}
    assert pageable(COPY, kernels=back).advice == KeepOnGpu()
    assert pageable(COPY, kernels={**COMPILED, **back}).advice == PinMemory()


def test_kernels_are_counted_against_those_of_another_gpu_alone() -> None:
    sides = make_side("gpu"), make_side("cpu", make_cpu_analysis())
    for pair in (sides, sides[::-1]):
        assert not [each for each in compare(*pair).findings if each.code in ("fewer_kernels", "more_gpu_time")]
