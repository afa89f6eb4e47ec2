"""The wording of every finding, as a snapshot that a person reads when it changes."""

import pytest
from syrupy.assertion import SnapshotAssertion

import tracekit.comparison.findings  # noqa: F401
from tracekit.model.analysis import Place
from tracekit.model.comparison import FindingStatement
from tracekit.model.compilation import EagerFallback
from tracekit.statements.accuracy import Difference
from tracekit.statements.evidence import ChannelsMovedLast
from tracekit.statements.findings.compiling import (
    BreakingLine,
    BrokenGraphs,
    CompiledAgain,
    FellBack,
    HitRecompileLimit,
    LittleCompiled,
    RecompiledDuringTiming,
    RecompilingCall,
    UncompiledComponent,
)
from tracekit.statements.findings.kernels import (
    FewerKernels,
    LostAttention,
    MoreGpuTime,
    SlowerAttention,
    SlowerConvolutions,
    SmallKernels,
)
from tracekit.statements.findings.precision import OutputsDiffer, SinglePrecision
from tracekit.statements.findings.times import ColdStart, CompileSlower, ProfilerDistortion, Slowdown, WarmStart
from tracekit.statements.findings.waiting import (
    GraphedLaunches,
    LaunchBound,
    MadeAt,
    OperatorCall,
    PageableCopies,
    SkippedCudaGraphs,
    SkippedGraphs,
    SynchronisingCalls,
)
from tracekit.statements.guards import Size

CHECK = Size(name="x", index="0", then="1", now="4")
REASON = "Unsupported Tensor.item()"
BREAK = BreakingLine("model.py:20", "folder/model.py:20", REASON, 9.0, 3.0, "Keep it a tensor.", steers_branch=False)
STEERING = BreakingLine("model.py:20", "folder/model.py:20", REASON, 9.0, 3.0, None, steers_branch=True)
NO_LINE = BreakingLine(None, None, REASON, None, None, None, steers_branch=False)
BROKEN = BrokenGraphs("compiled", 1, [BREAK], 0, can_be_switched=False, costly=True, on_gpu=True)
COLD = ColdStart(
    startup_us=6e7,
    calls=5000.0,
    calls_at_most=None,
    calls_ci95=(4810.2, 5200.0),
    call_saving_us=200.0,
    medians_apart_us=200.0,
    warm=WarmStart(2e7, 1500.0, 1600.0, None),
    warm_was_measured=True,
    can_start_anew=True,
    can_be_regional=True,
)
AGAIN = CompiledAgain("compiled", 1, None, None, CHECK, dearest_s=3.0, whole_s=3.0)
PART = EagerFallback("recompile_limit", "forward", "model.py:12", "Limit exceeded")
SKIPPED = EagerFallback("skipped", "forward", None, "Limit exceeded", "model.py:14")
FAILED = EagerFallback("error", None, "model.py:12", "Limit exceeded")
CALL, GRAPHS = RecompilingCall(1, 12.3e6, [CHECK], 0), RecompilingCall(2, None, [], 2)
RECOMPILED = RecompiledDuringTiming(
    side="compiled",
    compilations=1,
    calls=1,
    first=[CALL],
    cost_us=12.2e6,
    warmed_up_at={"batch_size": 1},
    any_size=False,
    failed_for_one=False,
)
GRAPHED = GraphedLaunches("compiled", 0.95, 37.0, 2.0, -300.0)
SINGLE = SinglePrecision("compiled", 1.0, ["aten::bmm"], 80.0, 800.0, read=1, read_before=0, before="eager")
LOST = LostAttention("eager", "compiled", 100.0, 0.0, 255.0, in_float32=True)
COPYING = MadeAt(Place("aten::copy_", None, None), {}, in_eager_code=False)
COPIED = PageableCopies("compiled", 1.0, 3.0, 100.0, 1300.0, [COPYING])
SLOWED = Slowdown("compiled", 2.71)
MUTATED = SkippedGraphs("mutated inputs", 3)
CONVOLVED = SlowerConvolutions(2, 1200.0, 6000.0, [ChannelsMovedLast()], True, 500.0)
ASKED = [OperatorCall("aten::item", f"model.py:{line}") for line in (12, 14)]
WAITED = SynchronisingCalls("compiled", 2.0, ["cudaStreamSynchronize"], 120.0, 1300.0, ASKED)
FUSIBLE = UncompiledComponent("vae", False, 60.0, 863.0, 0.25, others=())

#: Every finding, more than once where words differ with its facts.
FINDINGS: tuple[FindingStatement, ...] = (
    BROKEN,
    BROKEN.but(lines=5, longest=[STEERING, NO_LINE], counted_by_dynamo=23, on_gpu=False, can_be_switched=True),
    BROKEN.but(in_program=True),
    COLD,
    COLD.but(medians_apart_us=150.0, warm=None, warm_was_measured=False, can_be_regional=False),
    COLD.but(warm_was_measured=False, can_start_anew=False),
    CompileSlower(1000.0, 1500.0),
    AGAIN,
    AGAIN.but(times=2, function="forward", where="model.py:12", dearest_s=45.0, whole_s=45.5),
    FellBack("compiled", None, True, 1.0),
    FellBack("compiled", SKIPPED, False, None),
    FellBack("compiled", FAILED, False, 0.75),
    FewerKernels(37.0, 22.0, 863.0, 709.0),
    GRAPHED,
    GRAPHED.but(idle_change_us=None),
    LaunchBound(1000.0, 500.0, host_share=0.95, launching_share=0.9),
    LittleCompiled("compiled", 0.2, 709.0, "transformer"),
    LittleCompiled("compiled", 0.2, None, None),
    LOST,
    LOST.but(products_more_us=-1.0, in_float32=False),
    MoreGpuTime("compiled", 37.0, 38.0, 863.0, 964.0),
    OutputsDiffer("eager", "compiled", Difference("", 0.07, 0.06)),
    COPIED,
    COPIED.but(copies=2.0, made_by=[]),
    ProfilerDistortion([Slowdown("eager", 1.5), SLOWED], on_gpu=True),
    ProfilerDistortion([SLOWED], on_gpu=False),
    HitRecompileLimit("compiled", PART, False, 0.75),
    RECOMPILED,
    RECOMPILED.but(calls=0, first=[], cost_us=None, compilations=3),
    RECOMPILED.but(calls=5, warmed_up_at={}, any_size=True, failed_for_one=True),
    RECOMPILED.but(first=[GRAPHS], cost_us=None, any_size=True),
    RECOMPILED.but(first=[RecompilingCall(1, 12.3e6, [], 0)], warmed_up_at={}),
    SINGLE,
    SINGLE.but(read_before=1),
    SINGLE.but(by_compiling=False),
    SINGLE.but(read_before=1, before=None),
    SkippedCudaGraphs(0.3, []),
    SkippedCudaGraphs(0.0, [MUTATED, SkippedGraphs(None, 1)]),
    SkippedCudaGraphs(None, [MUTATED]),
    SlowerAttention(100.0, 220.0, []),
    *(CONVOLVED.but(others_gained_us=gained_us) for gained_us in (500.0, 9000.0, -100.0)),
    SlowerConvolutions(1, 1200.0, 6000.0, [], False, None),
    SmallKernels("compiled", 600.0, 1000.0),
    WAITED,
    WAITED.but(calls=["cudaStreamSynchronize", "cudaEventSynchronize"], made_by=[]),
    FUSIBLE,
    FUSIBLE.but(component="encoder", partly_compiled=True, others=("vae",)),
)


def test_every_finding_is_here() -> None:
    kinds = FindingStatement.classes.values()
    assert {type(each) for each in FINDINGS} == {each for each in kinds if "statements.findings" in each.__module__}


@pytest.mark.parametrize("code", sorted({each.code for each in FINDINGS}))
def test_a_finding_says(code: str, snapshot: SnapshotAssertion) -> None:
    assert [(each.title(), each.long()) for each in FINDINGS if each.code == code] == snapshot


def test_where_communication_is_left_out_it_is_said(snapshot: SnapshotAssertion) -> None:
    counts = (37.0, 22.0, 863.0, 909.0, True)
    alone = (FewerKernels(*counts), MoreGpuTime("compiled", *counts))
    assert [(each.title(), each.long()) for each in alone] == snapshot


def test_few_words_say_why_advice_is_worth_trying(snapshot: SnapshotAssertion) -> None:
    assert {each.code: why for each in FINDINGS if (why := each.why())} == snapshot


def test_a_costly_break_is_told_in_a_line(snapshot: SnapshotAssertion) -> None:
    several = BROKEN.but(lines=5, on_gpu=False)
    assert [(each.short(), each.place) for each in (BROKEN, several)] == snapshot


def test_a_switch_promises_to_remove_a_break_only_as_a_possibility_until_it_was_tried() -> None:
    switched = BROKEN.but(can_be_switched=True)
    assert "may" in switched.why().split() and "may" not in switched.why_tried().split()
    assert BROKEN.why() == ""


def test_each_is_as_grave_as_its_facts_make_it(snapshot: SnapshotAssertion) -> None:
    found = {
        each.code: tuple(dict.fromkeys(one.severity for one in FINDINGS if one.code == each.code)) for each in FINDINGS
    }
    assert found == snapshot
    assert [AGAIN.but(times=times).severity for times in (3, 4)] == ["info", "warning"]
