import pytest
from msgspec.structs import replace
from tests.sides import command_of, make_analysis, make_form, make_settings, make_side, scaled

from tracekit.comparison.comparing import compare
from tracekit.comparison.findings.precision import find_single_precision
from tracekit.comparison.findings.slower_kernels import find_slower_convolutions
from tracekit.model.comparison import Comparison, Finding, GroupMember, KernelGroup, Side
from tracekit.model.sequence import Activity, Operator, Sequence
from tracekit.statements.evidence import ChannelsMovedLast, EpilogueLost, OtherKernel

Sizes = tuple[int, ...]
#: What the group at the first place has as evidence, at the second, and what is said of channels that moved.
OF_0, OF_1, MOVED = EpilogueLost(0), EpilogueLost(1), ChannelsMovedLast()
FIRST, LAST = (960, 320, 8, 1), (960, 1, 96, 12)


def convolution(
    us: float,
    strides: Sizes,
    *,
    data: Sizes = (4, 12, 8, 10),
    weight: Sizes = (12, 1, 3, 3),
    call: int | None = None,
    type_: str = "c10::BFloat16",
    by: int = 1,
) -> Activity:
    """A kernel of a convolution with a stride of `by`; without a number it is a call of its own."""
    values = ("", "", "[1, 1]", f"[{by}, {by}]", "[1, 1]", "12")
    strides_of = (strides, (9, 9, 3, 1), (), (), (), ())
    dims: tuple[Sizes, ...] = (data, weight, (), (), (), ())
    operator = Operator("aten::cudnn_convolution", dims, (type_,) * 2 + ("",) * 4, values, strides_of)
    return Activity("k", "convolution", us, operator, ("aten::cudnn_convolution",), call, call)


def side(label: str, activities: list[Activity], busy_us: float = 10_000.0, per_step: float = 1.0) -> Side:
    analysis = make_analysis({"k": ("convolution", 2, 2 * busy_us)})
    form = make_form("compiled" if label == "compiled" else "eager", scaled(1.3))
    return make_side(label, analysis, form, sequence=Sequence(tuple(activities), per_step, "own"))


def group(a: tuple[int, ...], b: tuple[int, ...] | None = None) -> KernelGroup:
    """The kernels at these places; without those of B, at the same."""
    members = (GroupMember("k", 1, 1.0),)
    b = a if b is None else b
    evidence = (EpilogueLost(a[0]),) if a else ()
    return KernelGroup("substituted", "x", "anchors", members, members, 0, 0.0, (), evidence=evidence, a_at=a, b_at=b)


def compared(a: Side, b: Side, *groups: KernelGroup) -> Comparison:
    # The kernels by name are another matter: what is asked here is of the sequences.
    plain = compare(replace(a, sequence=None), replace(b, sequence=None))
    return replace(plain, a=a, b=b, groups=groups)


def found(a: list[Activity], b: list[Activity], *groups: KernelGroup, busy_us=10_000.0, per_step=(1.0, 1.0)):
    """Without groups each pair is one of its own."""
    sides = side("eager", a, busy_us, per_step[0]), side("compiled", b, busy_us, per_step[1])
    return find_slower_convolutions(compared(*sides, *(groups or [group((at,)) for at in range(len(a))])))


def times_of(finding: Finding) -> tuple[int, float, float]:
    """How many convolutions, and microseconds before and after."""
    return finding.statement.convolutions, finding.statement.before_us, finding.statement.after_us


def test_convolutions_that_take_longer_with_channels_last_are_found_with_what_to_switch_off():
    slow = [convolution(500, FIRST, call=1), convolution(700, FIRST, call=2)]
    finding = found(slow, [convolution(2000, LAST, call=1), convolution(4000, LAST, call=2)])
    assert times_of(finding) == (2, 1200, 6000)
    assert (finding.severity, finding.saving_us) == ("warning", pytest.approx(6000 - 1200))
    assert finding.statement.shown_by == (OF_1, MOVED) and finding.statement.laid_out_by_inductor
    assert finding.groups == (1, 0)
    assert finding.environment == {"TORCHINDUCTOR_LAYOUT_OPTIMIZATION": "0"}
    assert command_of(finding).startswith("TORCHINDUCTOR_LAYOUT_OPTIMIZATION=0 tracekit profile flux --compiled")


def test_what_the_layout_gains_elsewhere_is_taken_off_the_saving():
    a = [convolution(500, FIRST), convolution(800, FIRST), convolution(900, FIRST)]
    b = [convolution(2000, LAST), convolution(300, LAST), convolution(100, FIRST)]
    finding = found(a, b)
    # The third gains without lying otherwise: it keeps that.
    assert finding.saving_us == pytest.approx(1500 - 500)
    assert finding.statement.others_gained_us == pytest.approx(500)
    # Where it gains more than it costs it is left.
    a, b = [convolution(500, FIRST), convolution(3000, FIRST)], [convolution(900, LAST), convolution(300, LAST)]
    finding = found(a, b)
    assert (finding.saving_us, finding.advice, finding.environment) == (None, None, {})
    assert finding.statement.others_gained_us == pytest.approx(2700)
    assert times_of(finding) == (1, 500, 900)


def test_without_another_layout_the_loss_is_told_and_nothing_advised():
    finding = found([convolution(500, FIRST)], [convolution(2000, FIRST)])
    assert (finding.saving_us, finding.advice, finding.environment) == (None, None, {})
    assert times_of(finding) == (1, 500, 2000)
    assert (finding.statement.shown_by, finding.statement.laid_out_by_inductor) == ((OF_0,), False)


@pytest.mark.parametrize(
    ("a_us", "b_us", "busy_us", "is_told"),
    [(500, 620, 1e4, False), (500, 630, 1e4, True), (100, 250, 15_100, False), (100, 250, 14_900, True)],
)
def test_a_quarter_longer_is_slower_and_a_hundredth_of_the_gpu_s_time_worth_telling(a_us, b_us, busy_us, is_told):
    finding = found([convolution(a_us, FIRST)], [convolution(b_us, LAST)], busy_us=busy_us)
    assert (finding is not None) is is_told
    assert found([convolution(0, FIRST)], [convolution(2000, LAST)]) is None, "no number of times as long as nothing"


def test_a_side_of_one_step_has_as_many_convolutions_as_one_of_several():
    two, three = group((0, 1), tuple(range(6))), group((0,), (0,))
    a, b = [convolution(1000, FIRST)] * 2, [convolution(4000, LAST)] * 6
    finding = found(a, b, two, per_step=(1.0, 1 / 3))
    assert times_of(finding) == (2, 2000, 8000)
    assert found(a, b, two) is None
    assert found(b, a, group(tuple(range(6)), (0, 1)), per_step=(1 / 3, 1.0)) is None, "these take less"
    many = [convolution(1000, FIRST)] * 49, [convolution(4000, LAST)]
    assert found(*many, group(tuple(range(49)), (0,)), per_step=(1 / 49, 1.0)) is not None, "by 49 times 1/49"
    # In one of several steps.
    rare = found(a, b, three, per_step=(1 / 3, 1 / 3))
    assert rare.statement.convolutions == 1
    assert rare.statement.after_us == pytest.approx(4 * rare.statement.before_us)


def test_more_convolutions_or_those_of_another_size_type_or_stride_are_other_work():
    one, two = [convolution(500, FIRST)], [convolution(500, LAST)] * 2
    assert found(one, two, group((0,), (0, 1))) is None and found(two, one, group((0, 1), (0,))) is None
    for changes in ({"data": (8, 12, 8, 10)}, {"type_": "float"}, {"by": 2}):
        assert found([convolution(500, FIRST)], [convolution(2000, LAST, **changes)]) is None
    # Sizes decide where a side's stride and padding, and so the size of the result, were not recorded.
    silent = convolution(2000, LAST)
    silent = replace(silent, operator=replace(silent.operator, values=()))
    assert found([convolution(500, FIRST, by=2)], [silent]) is not None


def test_a_call_counts_once_and_whole_in_the_group_of_what_took_longest_of_it():
    # A lays its data out and back, in groups that B has no part in.
    a = [convolution(300, FIRST, call=7), convolution(500, FIRST, call=7), convolution(100, FIRST, call=7)]
    gone = (group((0,), ()), group((2,), ()))
    assert found(a, [convolution(900, LAST)], group((1,), (0,)), *gone) is None
    slower = found(a, [convolution(2000, LAST, call=3), convolution(1, LAST, call=3)], group((1,), (0,)), *gone)
    assert times_of(slower) == (1, 900, 2001)
    # Two kernels of either side's call, each of which takes longer.
    before = [convolution(us, FIRST, call=7) for us in (400, 500)]
    twice = found(before, [convolution(us, LAST, call=3) for us in (1000, 2000)])
    assert times_of(twice) == (1, 900, 3000)


@pytest.mark.parametrize(("family", "inductor"), [("triton", True), ("convolution", False)])
def test_of_a_bare_trace_triton_kernels_tell_that_inductor_made_it(family: str, inductor: bool):
    analysis = make_analysis({"triton_k" if inductor else "k": (family, 2, 20_000.0)})
    b = replace(side("compiled", [convolution(2000, LAST)]), analysis=analysis, form=None, settings=None)
    finding = find_slower_convolutions(compared(side("eager", [convolution(500, FIRST)]), b, group((0,))))
    assert finding.statement.laid_out_by_inductor is inductor
    assert finding.saving_us == (1500 if inductor else None)
    assert (finding.advice, finding.environment) == (None, {})


def test_that_channels_moved_is_said_once():
    sides = side("eager", [convolution(500, FIRST)]), side("compiled", [convolution(2000, LAST)])
    evidence = OtherKernel(before="a", after="b"), MOVED
    finding = find_slower_convolutions(compared(*sides, replace(group((0,)), evidence=evidence)))
    assert finding.statement.shown_by == evidence


def matmul(dtype: str, us: float) -> Activity:
    return Activity("gemm", "gemm", us, Operator("aten::bmm", ((8, 8, 8), (8, 8, 8)), (dtype, dtype)))


def side_of(label: str, *activities: Activity, dtype: str = "bfloat16", bare: bool = False) -> Side:
    of_run = {} if bare else {"form": make_form("compiled", scaled(1.3)), "settings": make_settings(dtype=dtype)}
    return make_side(label, **of_run, sequence=Sequence(activities, 1.0, "own"))


def found_in(a: Side, b: Side) -> Finding | None:
    return find_single_precision(compared(a, b))


HALF, SINGLE = matmul("c10::BFloat16", 100.0), matmul("float", 80.0)


def test_float32_products_in_a_model_of_16_bits_are_found_with_half_their_time():
    finding = found_in(side_of("eager", HALF), side_of("compiled", HALF, SINGLE))
    assert finding.saving_us == pytest.approx(40)
    assert (finding.statement.products, finding.statement.operators) == (1, ("aten::bmm",))
    assert finding.statement.products_us == pytest.approx(80)
    assert (finding.statement.read, finding.statement.read_before) == (1, 0)

    # Where eager has them too the model is to blame.
    finding = found_in(side_of("eager", HALF, SINGLE), side_of("compiled", HALF, SINGLE))
    assert (finding.statement.read, finding.statement.read_before, finding.statement.before) == (1, 1, "eager")


def test_compiling_is_blamed_where_only_compiling_differs():
    compiled = side_of("compiled", HALF, SINGLE)
    eager = replace(side_of("eager", HALF), form=make_form("eager", scaled(1.0)))
    assert found_in(eager, compiled).statement.by_compiling
    # Of another model, and of another run's compiled variant, A says nothing of what compiling does.
    for a in (replace(eager, settings=make_settings(batch_size=4)), side_of("other", HALF)):
        assert not found_in(a, compiled).statement.by_compiling
    # What has no matmul of a known type, a CPU's run, has not none of them.
    assert found_in(replace(eager, sequence=None), compiled).statement.before is None


def test_a_model_of_float32_may_multiply_in_it_and_a_fiftieth_of_the_gpu_s_time_is_not_told():
    assert found_in(side_of("eager", SINGLE, dtype="float32"), side_of("compiled", SINGLE, dtype="float32")) is None
    assert found_in(side_of("eager", HALF), side_of("compiled", HALF, matmul("float", 15.0))) is None
    # Of bare traces the other products tell the model's type.
    assert found_in(side_of("a", HALF, bare=True), side_of("b", HALF, SINGLE, bare=True)) is not None
    few = matmul("c10::BFloat16", 10.0)
    assert found_in(side_of("a", HALF, bare=True), side_of("b", few, SINGLE, bare=True)) is None
