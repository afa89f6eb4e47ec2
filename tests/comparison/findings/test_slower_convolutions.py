from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tracekit import store
from tracekit.comparison import compare
from tracekit.comparison.findings.slower_convolutions import find_slower_convolutions
from tracekit.model.comparison import Comparison, Finding, GroupMember, KernelGroup, Side
from tracekit.model.sequence import Activity, Operator, Sequence
from tracekit.walks.sides import compare_forms

from ...sides import make_analysis, make_form, make_side, scaled

Sizes = tuple[int, ...]
FIRST, LAST = (960, 320, 8, 1), (960, 1, 96, 12)


def convolution(us: float, strides: Sizes, *, data: Sizes = (4, 12, 8, 10), call: int = 0, name: str = "k") -> Activity:
    weight = (12, 1, 3, 3)
    operator = Operator("aten::cudnn_convolution", (data, weight), ("c10::BFloat16",) * 2, (), (strides, (9, 9, 3, 1)))
    return Activity(name, "convolution", us, operator, ("aten::cudnn_convolution",), call, call)


def side(label: str, activities: list[Activity], busy_us: float = 10_000.0, per_step: float = 1.0) -> Side:
    analysis = make_analysis({"k": ("convolution", 2, 2 * busy_us)})
    made = make_side(label, analysis, make_form("compiled" if label == "compiled" else "eager", scaled(1.3)))
    return replace(made, sequence=Sequence(tuple(activities), per_step, "own"))


def group(*at: int) -> KernelGroup:
    """The kernels at these places of either side."""
    members = (GroupMember("k", 1, 1.0),)
    evidence = (f"Of {at}.",)
    return KernelGroup("substituted", "x", "anchors", members, members, 0, 0.0, (), evidence=evidence, a_at=at, b_at=at)


def compared(a: Side, b: Side, *groups: KernelGroup) -> Comparison:
    plain = compare(replace(a, sequence=None), replace(b, sequence=None))
    return replace(plain, a=a, b=b, groups=groups)


def found(a: list[Activity], b: list[Activity], busy_us: float = 10_000.0, per_step: float = 1.0) -> Finding | None:
    """Each pair is a group of its own."""
    sides = side("eager", a, busy_us, per_step), side("compiled", b, busy_us, per_step)
    return find_slower_convolutions(compared(*sides, *(group(at) for at in range(len(a)))))


def test_convolutions_that_take_longer_with_channels_last_are_found_with_what_to_switch_off():
    slow = [convolution(500, FIRST, call=1), convolution(700, FIRST, call=2)]
    finding = found(slow, [convolution(2000, LAST, call=1), convolution(4000, LAST, call=2)])
    assert finding is not None
    assert finding.title == "2 convolutions take 5.0 times as long"
    assert finding.saving_us == pytest.approx(6000 - 1200)
    assert finding.evidence.startswith("From 1.20 ms to 6.00 ms. Of (1,). Inductor lays out")
    assert finding.environment == {"TORCHINDUCTOR_LAYOUT_OPTIMIZATION": "0"}
    assert finding.advice is not None
    assert finding.advice.startswith("TORCHINDUCTOR_LAYOUT_OPTIMIZATION=0 tracekit profile flux --compiled")
    assert finding.severity == "warning"


def test_what_the_layout_gains_elsewhere_is_taken_off_the_saving():
    a = [convolution(500, FIRST), convolution(800, FIRST), convolution(900, FIRST)]
    b = [convolution(2000, LAST), convolution(300, LAST), convolution(100, FIRST)]
    finding = found(a, b)
    assert finding is not None
    # The third gains without lying otherwise: it keeps that.
    assert finding.saving_us == pytest.approx(1500 - 500)
    assert (
        "Other convolutions that lie so too take 500.0 µs less, which they would lose again without."
        in finding.evidence
    )


def test_where_the_layout_gains_more_than_it_costs_it_is_left():
    finding = found(
        [convolution(500, FIRST), convolution(3000, FIRST)], [convolution(900, LAST), convolution(300, LAST)]
    )
    assert finding is not None
    assert (finding.saving_us, finding.advice, finding.environment) == (None, None, {})
    assert "take 2.70 ms less: more than these lost." in finding.evidence
    assert finding.title == "1 convolution takes 1.8 times as long"


def test_without_another_layout_the_loss_is_told_and_nothing_advised():
    finding = found([convolution(500, FIRST)], [convolution(2000, FIRST)])
    assert finding is not None
    assert (finding.saving_us, finding.advice, finding.environment) == (None, None, {})
    assert finding.evidence == "From 500.0 µs to 2.00 ms. Of (0,)."


@pytest.mark.parametrize(("us", "told"), [(620.0, False), (630.0, True)])
def test_a_quarter_longer_is_slower(us: float, told: bool):
    assert (found([convolution(500, FIRST)], [convolution(us, LAST)]) is not None) is told


@pytest.mark.parametrize(("busy_us", "told"), [(15_100.0, False), (14_900.0, True)])
def test_a_hundredth_of_the_gpu_s_time_is_worth_telling(busy_us: float, told: bool):
    assert (found([convolution(100, FIRST)], [convolution(250, LAST)], busy_us) is not None) is told


def test_other_sizes_are_other_work():
    assert found([convolution(500, FIRST)], [convolution(2000, LAST, data=(8, 12, 8, 10))]) is None


def test_of_steps_that_differ_the_time_is_per_step():
    finding = found([convolution(1000, FIRST)] * 2, [convolution(4000, LAST)] * 2, per_step=1 / 2)
    assert finding is not None
    assert "From 1.00 ms to" in finding.evidence


RUN = Path(__file__).parents[3] / "traces" / "h200-deeplabv3-mobilenet-b16"


def test_of_a_real_run_the_dilated_depthwise_convolutions_are_found():
    findings = {each.code: each for each in compare_forms(RUN, store.load(RUN)).findings}
    finding = findings["slower_convolutions"]
    assert finding.title == "10 convolutions take 5.7 times as long"
    assert "From 4.21 ms to 24.1 ms." in finding.evidence
    assert "the channels of what is convolved lay first (NCHW) and lie last (NHWC)." in finding.evidence
    assert finding.saving_us == pytest.approx(15_924, abs=5)
    # The GPU waits for nothing here: CUDA graphs would change nothing.
    assert findings["compile_slower"].advice is None
