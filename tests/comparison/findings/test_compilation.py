"""What is found in what torch.compile said, and that a healthy run asks for nothing."""

from typing import Any

import pytest
from msgspec.structs import replace
from tests.sides import (
    COMPILED,
    EAGER,
    ORDER,
    STEADY,
    command_of,
    make_analysis,
    make_form,
    make_settings,
    make_side,
    scaled,
)

from tracekit.comparison.comparing import compare
from tracekit.comparison.judging.timed import find_compiling_costs
from tracekit.model.comparison import Comparison, Finding, Side
from tracekit.model.compilation import (
    CompiledRegions,
    CompilingCall,
    CudaGraphSkip,
    Diagnostics,
    EagerFallback,
    FailedGuard,
    FrameCompilation,
    GraphBreak,
    RegionTime,
)
from tracekit.model.note import Note
from tracekit.report.words.short import advice_words
from tracekit.statements.findings.compiling import STEERS, HitRecompileLimit, RecompilingCall
from tracekit.statements.findings.waiting import SkippedCudaGraphs, SkippedGraphs
from tracekit.statements.guards import check_of
from tracekit.statements.notes.work import PartRanEager, RanEager

SIZE = FailedGuard("0/0", "tensor 'x' size mismatch at index 0. expected 1, actual 4")
FRAME = FrameCompilation("0/0", "forward", "model.py:12", "warm-up", 1, 2.0, 40)
ITEM = GraphBreak("model.py:20", "forward", "Unsupported Tensor.item()", None, "Keep it a tensor.", "gb0124", ("0/0",))
LIMIT = EagerFallback("recompile_limit", "forward", "model.py:12", "Dynamo recompile limit exceeded")


def warnings(comparison: Comparison) -> list[Note]:
    return [each for each in comparison.notes if each.severity != "info"]


def make_regions(count: int = 2, share: float = 1.0) -> CompiledRegions:
    """Of two steps."""
    regions = (RegionTime("0/0", count, 500.0, 80.0),) if count else ()
    return CompiledRegions(regions, count, count, 20.0, 10.0, 1418 * share if count else 0.0, 1418.0, 0.0, 46, 46)


def sides(
    found: Diagnostics | None = None,
    *,
    regions: CompiledRegions | None = None,
    wall_us: tuple[float, ...] = scaled(0.88),
    during_timing: int = 0,
    **settings: Any,
) -> tuple[Side, Side]:
    a = make_side("eager", make_analysis(EAGER), make_form("eager", STEADY))
    form = make_form("compiled", wall_us, during_timing=during_timing, diagnostics=found)
    analysis = replace(make_analysis(COMPILED, idle_us=300.0), regions=regions or make_regions())
    return a, make_side("compiled", analysis, form, settings=make_settings(**settings))


def compared(found: Diagnostics | None = None, **options: Any) -> Comparison:
    return compare(*sides(found, **options), ORDER)


def findings(found: Diagnostics | None = None, **options: Any) -> dict[str, Finding]:
    return {each.code: each for each in compared(found, **options).findings}


def test_a_healthy_compilation_asks_for_nothing():
    comparison = compared(Diagnostics(frames=(FRAME,)))
    found = {finding.code: finding.severity for finding in comparison.findings}
    assert found == {"fewer_kernels": "info", "profiler_distortion": "info"}
    assert warnings(comparison) == warnings(compared(None)) == []


def test_one_cheap_break_is_information_with_its_line_and_what_helps():
    finding = findings(Diagnostics(frames=(FRAME,), breaks=(replace(ITEM, per_step_us=9.0),)))["broken_graphs"]
    assert (finding.severity, finding.saving_us, finding.environment) == ("info", 9.0, {})
    assert not finding.statement.can_be_switched
    (longest,) = finding.statement.longest
    assert (longest.line, longest.reason, longest.cost_us) == ("model.py:20", "Unsupported Tensor.item()", 9.0)
    assert longest.hint == "Keep it a tensor."
    assert command_of(finding).endswith("--fullgraph")


def test_what_torch_hints_at_is_switched_on_by_the_command():
    hints = ("`torch._dynamo.config.capture_scalar_outputs = True`", "capture_dynamic_output_shape_ops = True")
    breaks = tuple(replace(ITEM, where=f"model.py:{n}", hint=hint) for n, hint in enumerate(hints))
    finding = findings(Diagnostics(breaks=breaks))["broken_graphs"]
    both = "TORCHDYNAMO_CAPTURE_SCALAR_OUTPUTS=1 TORCHDYNAMO_CAPTURE_DYNAMIC_OUTPUT_SHAPE_OPS=1 tracekit profile "
    assert command_of(finding).startswith(both)
    assert "--fullgraph" not in command_of(finding) and finding.statement.can_be_switched
    names = ("SCALAR_OUTPUTS", "DYNAMIC_OUTPUT_SHAPE_OPS")
    assert {*finding.environment} == {f"TORCHDYNAMO_CAPTURE_{name}" for name in names}


def test_each_hint_is_beside_its_line_and_none_is_taken_where_a_value_steers_a_branch():
    switch = "Set capture_scalar_outputs."
    steering = replace(ITEM, where="model.py:30", hint=switch, steers_branch=True, per_step_us=50.0)
    plain = replace(ITEM, per_step_us=9.0)
    finding = findings(Diagnostics(breaks=(steering, plain)))["broken_graphs"]
    assert (finding.environment, finding.statement.can_be_switched, finding.saving_us) == ({}, False, 59.0)
    told = [(each.line, each.hint, each.steers_branch) for each in finding.statement.longest]
    assert told == [("model.py:30", None, True), ("model.py:20", "Keep it a tensor.", False)]
    words = finding.statement.long()
    assert words.index("model.py:30") < words.index(STEERS) < words.index("model.py:20") < words.index("Keep it")


def test_of_many_breaks_the_costliest_are_named_and_the_rest_counted():
    many = [replace(ITEM, where=f"model.py:{n}", per_step_us=float(n)) for n in range(1, 6)]
    many = (*many[:-1], replace(many[-1], called_from="model.py:40"))
    finding = findings(Diagnostics(breaks=many))["broken_graphs"]
    assert finding.statement.lines == 5
    # A break in a helper names the model's line that called it.
    lines = ["model.py:5, called from model.py:40", "model.py:4", "model.py:3"]
    assert [each.line for each in finding.statement.longest] == lines
    assert finding.saving_us == 15.0


def test_what_breaks_in_torchs_own_code_is_told_and_nobody_is_advised_to_remove_it():
    ddp = "torch/nn/parallel/distributed.py:1757"
    torchs = replace(ITEM, where=ddp, called_from="train.py:31", hint="Avoid calling it.", per_step_us=90.0)
    finding = findings(Diagnostics(breaks=(torchs,)))["broken_graphs"]
    assert (finding.advice, finding.saving_us) == (None, None)
    words = finding.statement.long()
    assert f"{ddp}, called from train.py:31, in torch's own code: " in words
    assert "hint" not in words and "--fullgraph" not in words
    assert advice_words(finding) == ("", "")
    # Beside one of the program's own that alone is to be removed.
    finding = findings(Diagnostics(breaks=(torchs, replace(ITEM, per_step_us=60.0))))["broken_graphs"]
    assert finding.saving_us == 60.0
    assert advice_words(finding) == ("remove the graph break at model.py:20", "")
    assert finding.statement.short().startswith(f"Graph break at {ddp}, called from train.py:31: ")


def test_the_programs_own_break_is_named_beside_costlier_ones_of_torch_and_removed_where_that_pays():
    torchs = [replace(ITEM, where=f"torch/optim/adam.py:{n}", per_step_us=90.0) for n in range(1, 5)]
    for cost_us, words in ((60.0, "remove the graph break at model.py:20"), (0.01, "")):
        finding = findings(Diagnostics(breaks=(*torchs, replace(ITEM, per_step_us=cost_us))))["broken_graphs"]
        assert "model.py:20" in [each.where for each in finding.statement.longest]
        assert (advice_words(finding)[0], finding.saving_us) == (words, cost_us)
        assert finding.statement.long().endswith("it raises an error that names the first one.")


def test_three_breaks_are_a_warning_and_so_is_a_costly_one_that_saves_no_more_than_the_gpu_waits():
    for number, severity in ((2, "info"), (3, "warning")):
        assert findings(Diagnostics(breaks=(ITEM,) * number))["broken_graphs"].severity == severity
    idle_us = sides(Diagnostics())[1].unprofiled_idle_us
    for cost_us, severity, saving_us in ((40.0, "warning", 40.0), (1e4, "warning", idle_us), (None, "info", None)):
        finding = findings(Diagnostics(breaks=(replace(ITEM, per_step_us=cost_us),)))["broken_graphs"]
        assert (finding.severity, finding.saving_us) == (severity, saving_us)


def test_a_reached_limit_is_told_with_dynamic_shapes_to_try_and_a_warning_on_the_verdict():
    comparison = compared(Diagnostics(frames=(FRAME,), fallbacks=(LIMIT,)), regions=make_regions(share=0.25))
    finding = {each.code: each for each in comparison.findings}["recompile_limit"]
    assert finding.statement == HitRecompileLimit("compiled", LIMIT, False, pytest.approx(0.75))
    assert command_of(finding).endswith("--dynamic")
    ran_eager = PartRanEager("compiled", "forward (model.py:12)", "Dynamo recompile limit exceeded")
    assert warnings(comparison) == [ran_eager]


@pytest.mark.parametrize(
    ("told", "code", "reason"),
    [(Diagnostics(fallbacks=(LIMIT,)), "recompile_limit", LIMIT.reason), (None, "eager_fallback", None)],
)
def test_a_compiled_form_without_any_compiled_step_ran_eager_also_in_a_run_of_before(told, code, reason):
    comparison = compared(told, regions=make_regions(0))
    assert warnings(comparison) == [RanEager(reason)]
    assert (comparison.findings[0].code, comparison.findings[0].statement.ran_eager) == (code, True)


def test_a_compiled_form_of_which_torch_made_no_graph_ran_eager_although_its_frames_were_entered():
    """As torch 2.11 leaves an encoder whose fast path it cannot trace."""
    a, b = sides(Diagnostics(breaks=(ITEM,)), regions=replace(make_regions(), graphs=0))
    assert b.form is not None and b.form.compilation is not None
    # Another backend than Inductor leaves no events of its graphs.
    assert not [each for each in compare(a, b, ORDER).notes if isinstance(each, RanEager)]
    form = replace(b.form, compilation=replace(b.form.compilation, graphs=0))
    (note,) = (each for each in compare(a, replace(b, form=form), ORDER).notes if isinstance(each, RanEager))
    assert note.reason == "graph break at model.py:20: Unsupported Tensor.item()"


def test_hooks_of_sharded_modules_run_eager_by_design_and_nothing_advises_against_it():
    hook = EagerFallback("skipped", "forward", "torch/distributed/fsdp/_fully_shard/_fsdp_common.py:30", "skipped")
    assert "eager_fallback" not in findings(Diagnostics(fallbacks=(hook,)))
    assert warnings(compared(Diagnostics(fallbacks=(hook,)))) == []
    assert "eager_fallback" in findings(Diagnostics(fallbacks=(hook, replace(hook, where="model.py:12"))))


def test_compiled_code_that_does_less_than_half_of_the_work_is_told():
    finding = findings(None, regions=make_regions(share=0.2))["little_compiled"]
    assert finding.statement.compiled_share == pytest.approx(0.2)
    assert (finding.statement.busy_us, finding.statement.scope) == (709.0, "transformer")
    assert "little_compiled" not in findings(None, regions=make_regions(share=0.5))
    # What ran eager is another finding.
    found = findings(None, regions=replace(make_regions(0), gpu_us=0.0))
    assert "eager_fallback" in found and "little_compiled" not in found


def test_skipped_cuda_graphs_are_told_with_the_reason_where_they_were_asked_for():
    skipped = Diagnostics(cuda_graph_skips=(CudaGraphSkip("mutated inputs (2 instances)", 3),))
    finding = findings(skipped, mode="reduce-overhead")["skipped_cuda_graphs"]
    assert finding.statement.skips == [SkippedGraphs("mutated inputs (2 instances)", 3)]
    assert finding.statement.graphed_share == 0
    assert "--mode default" in command_of(finding)
    assert "skipped_cuda_graphs" not in findings(skipped)
    assert "skipped_cuda_graphs" not in findings(skipped, mode="reduce-overhead", device="cpu")


def test_few_kernels_in_graphs_are_told_though_torch_gave_no_reason():
    a, b = sides(Diagnostics(), mode="reduce-overhead")
    count = b.analysis.kernels.count

    def told(share: float) -> Finding | None:
        launches = replace(b.analysis.launches, graph_launches=2, kernels_in_graphs=round(share * count))
        side = replace(b, analysis=replace(b.analysis, launches=launches))
        return next((each for each in compare(a, side, ORDER).findings if each.code == "skipped_cuda_graphs"), None)

    assert told(0.3).statement == SkippedCudaGraphs(pytest.approx(0.3, abs=0.02), [])
    assert told(0.6) is None
    # Graphs that any size hinders are tried with fixed ones.
    skipped = Diagnostics(cuda_graph_skips=(CudaGraphSkip("graph with symbolic shapes inputs", 1),))
    advice = command_of(findings(skipped, mode="max-autotune")["skipped_cuda_graphs"])
    assert "--mode max-autotune" in advice and advice.endswith("--no-dynamic")


def test_code_compiled_again_before_it_was_quiet_is_told_with_the_check():
    again = replace(FRAME, id="0/1", because=(SIZE,), seconds=3.0)
    finding = findings(Diagnostics(frames=(FRAME, again)))["compiled_again"]
    assert (finding.statement.function, finding.statement.where) == ("forward", "model.py:12")
    assert (finding.statement.failed_check, finding.statement.whole_s) == (check_of(SIZE), 3.0)
    assert finding.severity == "info" and command_of(finding).endswith("--dynamic")
    # Four are worth an action.
    assert findings(Diagnostics(frames=(FRAME, *(again,) * 4)))["compiled_again"].severity == "warning"
    # Of several checks the one that cost most is told.
    other = FailedGuard("0/0", "len(args) == 2  # output = func(self, *args)")
    quick = replace(FRAME, id="0/1", because=(other,), seconds=0.5)
    slow = replace(FRAME, id="0/2", because=(SIZE, other), seconds=45.0)
    finding = findings(Diagnostics(frames=(FRAME, quick, slow)))["compiled_again"]
    assert finding.statement.failed_check == check_of(SIZE)
    assert (finding.statement.dearest_s, finding.statement.whole_s) == (45.0, 45.5)
    # Any size is no advice where no size was checked.
    alone = findings(Diagnostics(frames=(FRAME, quick)))["compiled_again"]
    assert (alone.statement.failed_check, alone.statement.whole_s) == (check_of(other), 0.5)
    assert (alone.advice, alone.changes) == (None, {})


#: Warmed up at batch 1; the first timed call compiled again.
AUDITED = Diagnostics(
    frames=(FRAME, replace(FRAME, id="0/1", phase="timed", call=1, because=(SIZE,), seconds=12.0)),
    calls=(CompilingCall("warm-up", 1, 1, 0, 9e6), CompilingCall("timed", 1, 1, 0, 12.3e6)),
    warmed_up_at={"batch_size": 1},
)
WALLS = (12.3e6, *scaled(0.5)[1:])


def test_the_classic_mistake_is_told_with_its_call_its_check_and_its_price():
    finding = compared(AUDITED, wall_us=WALLS, during_timing=1, batch_size=4).findings[0]
    assert finding.code == "recompiled_during_timing"
    (call,) = finding.statement.first
    assert call == RecompilingCall(1, 12.3e6, (check_of(SIZE),), 0)
    assert (finding.statement.calls, finding.statement.cost_us) == (1, pytest.approx(12.3e6, rel=1e-3))
    assert finding.statement.warmed_up_at == {"batch_size": 1}
    assert "--batch-size 4" in command_of(finding) and "--warmup" not in command_of(finding)


def test_what_a_compiling_call_cost_is_what_it_took_beyond_the_usual_call():
    _, side = sides(AUDITED, wall_us=WALLS, during_timing=1)
    (cost,) = find_compiling_costs(side)
    assert cost.extra_us == pytest.approx(12.3e6 - 500, abs=2)
    assert [frame.id for frame in cost.frames] == ["0/1"]
    # Without a call that did not compile nobody knows.
    found = replace(AUDITED, calls=tuple(CompilingCall("timed", n, 1, 0, 9e6) for n in (1, 2)))
    _, side = sides(found, wall_us=(9e6, 9e6), during_timing=2)
    assert [cost.extra_us for cost in find_compiling_costs(side)] == [None, None]


def test_without_the_audit_dynamic_is_advised_to_whoever_had_it_off():
    found = replace(AUDITED, warmed_up_at=None)
    off, on = (
        findings(found, wall_us=WALLS, during_timing=1, dynamic=dynamic)["recompiled_during_timing"]
        for dynamic in (None, True)
    )
    assert (off.statement.any_size, on.statement.any_size, on.statement.failed_for_one) == (False, True, True)
    assert command_of(off).endswith("--dynamic")
    assert command_of(on).startswith("TORCH_LOGS=recompiles ") and command_of(on).count("--dynamic") == 1
    told = findings(AUDITED, during_timing=1, dynamic=True)["recompiled_during_timing"]
    assert told.statement.any_size and "TORCH_LOGS" not in command_of(told)
