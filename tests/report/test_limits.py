from __future__ import annotations

from dataclasses import replace

from tracekit.model.comparison import Bound
from tracekit.report.sections.headline import bound_sentence, idle_sentence, limit_sentences

from ..sides import make_analysis, make_cpu_analysis, make_form, make_side
from .conftest import cpu_comparison, timed_comparison

WORK = {"gemm": ("gemm", 10, 2000.0)}


def test_true_idle_time_stands_beside_the_trace_s() -> None:
    # Per step 1000 us busy; 1098.9 us a call unprofiled, 1300 us recorded.
    side = make_side("eager", make_analysis(WORK, idle_us=600), make_form(wall_us=(1098.9,) * 10))
    assert idle_sentence(side) == "idle 9 % (the trace shows 23 %: recording slowed this form 1.18×)"


def test_recorded_steps_that_were_faster_are_not_called_slowed() -> None:
    side = make_side("eager", make_analysis(WORK, idle_us=200), make_form(wall_us=(1375.0,) * 10))
    assert idle_sentence(side) == ("idle 27 % (the trace shows 9 %: recorded steps took 0.80× the time of timed calls)")


def test_what_cannot_be_calibrated_is_the_trace_s_own_account_and_says_why() -> None:
    bare = make_side("trace.json", make_analysis(WORK, idle_us=600))
    own = "idle 23 % as recorded; recording lengthens idle time, and by how much cannot be told: "
    assert idle_sentence(bare) == f"{own}there are no unprofiled times"
    timed = replace(bare, form=make_form())
    several = replace(timed, analysis=make_analysis(WORK, idle_us=600, devices=2))
    assert idle_sentence(several) == f"{own}what was read of the trace is not one call on one GPU"
    short = replace(timed, form=make_form(wall_us=(500.0,) * 10))
    assert idle_sentence(short) == f"{own}the recorded step holds more GPU work than the unprofiled call took"


def test_a_side_without_a_gpu_has_no_idle_time() -> None:
    assert idle_sentence(make_side("eager", make_cpu_analysis(), make_form())) is None
    assert limit_sentences(cpu_comparison()) == ()


def test_a_bound_is_a_sentence_with_its_reason() -> None:
    bound = Bound("launch-bound", "unprofiled", {"launch": 59.0, "compute": 41.0, "copy": 0.0}, None)
    assert bound_sentence(bound).startswith("Launch-bound: in 59 % of the call the GPU had nothing to do")
    assert bound_sentence(replace(bound, kind=None)).startswith("What limits it cannot be told: in 59 %")


def test_both_sides_are_told() -> None:
    told = limit_sentences(timed_comparison())
    assert [sentence.split(":")[0] for sentence in told] == ["eager", "compiled"]
    assert all(sentence.endswith(".") for sentence in told)
