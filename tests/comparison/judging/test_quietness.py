from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tracekit.comparison import compare
from tracekit.comparison.judging.fairness import find_unfairness
from tracekit.model.comparison import Side
from tracekit.model.gpu import GpuSample, GpuState, Moment
from tracekit.model.note import Note

from ...sides import make_form, make_side


def sample(moment: Moment = "during", seconds: float = 0.5, **changes: Any) -> GpuSample:
    values: dict[str, Any] = {
        "sm_clock_mhz": 1980,
        "memory_clock_mhz": 2619,
        "power_w": 400.0,
        "temperature_c": 50,
        "slowed_by": (),
        "other_processes": 0,
    }
    return GpuSample(moment, seconds, **{**values, **changes})


def side(label: str, during: Sequence[GpuSample] = (sample(),), slowed_us: dict[str, float] | None = None) -> Side:
    samples = (sample("before", 0.0, sm_clock_mhz=345), *during, sample("after", 1.0))
    state = GpuState("nvml", samples, slowed_us, 700.0)
    return make_side(label, form=replace(make_form(), gpu_state=state))


def noted(a: Side, b: Side) -> tuple[Note, ...]:
    return find_unfairness(a, replace(b, path="other"))


def test_a_quiet_gpu_is_nothing_to_mention():
    none = {"power": 0.0, "temperature": 0.0}
    assert noted(side("eager", slowed_us=none), side("compiled", slowed_us=none)) == ()


def test_a_power_limit_is_told_once_with_the_time_it_held():
    slowed = {"power": 250_000.0, "temperature": 0.0}
    found = noted(side("eager", slowed_us=slowed), side("compiled", slowed_us=slowed))
    facts = {"sides": ["eager", "compiled"], "limit": "power", "share": 0.25}
    assert found == (Note("throttled", facts=facts, grave=True),)


def test_a_limit_that_hardly_held_is_not_told():
    slowed = {"power": 9_000.0}
    assert noted(side("eager", slowed_us=slowed), side("compiled", slowed_us=slowed)) == ()


def test_without_counters_the_reasons_given_between_calls_are_told():
    hot = (sample(slowed_by=("temperature (hardware)",)), sample(seconds=0.7))
    (found,) = noted(side("eager"), side("compiled", hot))
    facts = {"sides": ["compiled"], "reason": "temperature (hardware)", "samples": 1, "of_samples": 2}
    assert found == Note("throttled_in_samples", facts=facts, grave=True)
    once = (*hot, *(sample(seconds=0.8) for _ in range(20)))
    assert noted(side("eager"), side("compiled", once)) == ()


def test_a_shared_gpu_is_told():
    (found,) = noted(side("eager"), side("compiled", (sample(other_processes=2),)))
    assert found == Note("gpu_shared", facts={"sides": ["compiled"], "processes": 2}, grave=True)


def test_processes_that_cannot_be_counted_are_not_told_as_others():
    unknown = (sample(other_processes=None),)
    assert noted(side("eager", unknown), side("compiled", unknown)) == ()


def test_clocks_that_differ_between_the_forms_are_told():
    slower = (sample(sm_clock_mhz=1755), sample(sm_clock_mhz=1785, seconds=0.7))
    (found,) = noted(side("eager"), side("compiled", slower))
    assert (found.code, found.grave) == ("clocks_differ", True)
    assert (found.facts["sides"], found.facts["clocks_mhz"]) == (["A", "B"], [1980, 1770])
    assert noted(side("eager"), side("compiled", (sample(sm_clock_mhz=1890),))) == ()


def test_a_lower_clock_is_said_to_hide_or_to_widen_the_difference():
    slow = (sample(sm_clock_mhz=1725),)

    def timed(each: Side, us: float) -> Side:
        assert each.form is not None
        return replace(each, form=replace(each.form, wall_us=(us,) * 10))

    (hides,) = noted(timed(side("eager"), 1300.0), timed(side("compiled", slow), 1200.0))
    assert (hides.facts["lower"], hides.facts["faster"]) == ("compiled", "compiled")
    (widens,) = noted(timed(side("eager"), 1200.0), timed(side("compiled", slow), 1300.0))
    assert (widens.facts["lower"], widens.facts["faster"]) == ("compiled", "eager")
    (eager_hides,) = noted(timed(side("eager", slow), 1200.0), timed(side("compiled"), 1300.0))
    assert (eager_hides.facts["lower"], eager_hides.facts["faster"]) == ("eager", "eager")


def test_a_throttled_gpu_is_grave_and_clean_runs_have_nothing_grave():
    def judged(slowed_us: float) -> tuple[Note, ...]:
        a, b = (side(name, slowed_us={"power": slowed_us}) for name in ("eager", "compiled"))
        return tuple(each for each in compare(a, replace(b, path="other")).notes if each.grave)

    (told,) = judged(250_000.0)
    assert (told.code, told.facts["sides"]) == ("throttled", ["eager", "compiled"])
    assert judged(0.0) == ()


def test_runs_without_a_state_are_compared_as_before():
    bare = make_side("eager", form=make_form())
    assert noted(bare, make_side("compiled", form=make_form())) == ()


def test_a_counter_of_one_limit_does_not_hide_another():
    braked = (sample(slowed_by=("power brake", "power limit (software)")), sample(seconds=0.7))
    found = noted(side("eager"), side("compiled", braked, {"power": 300_000.0, "temperature": 0.0}))
    limits = [each.facts for each in found if each.code == "throttled"]
    assert [(each["limit"], each["share"]) for each in limits] == [("power", 0.3)]
    assert [each.facts["reason"] for each in found if each.code == "throttled_in_samples"] == ["power brake"]
