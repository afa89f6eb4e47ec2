from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tracekit.comparison import compare
from tracekit.comparison.fairness import find_unfairness
from tracekit.model.comparison import Side
from tracekit.model.gpu_state import GpuSample, GpuState, Moment

from ..sides import make_form, make_side


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


def warnings(a: Side, b: Side) -> tuple[str, ...]:
    return find_unfairness(a, replace(b, path="other"))


def test_a_quiet_gpu_is_nothing_to_mention():
    none = {"power": 0.0, "temperature": 0.0}
    assert warnings(side("eager", slowed_us=none), side("compiled", slowed_us=none)) == ()


def test_a_power_limit_is_told_once_with_the_time_it_held():
    slowed = {"power": 250_000.0, "temperature": 0.0}
    found = warnings(side("eager", slowed_us=slowed), side("compiled", slowed_us=slowed))
    expected = "eager and compiled: the GPU was held back while it was timed: by its power limit for 25 % of the time. "
    assert found == (f"{expected}Times are of a throttled GPU.",)


def test_a_limit_that_hardly_held_is_not_told():
    slowed = {"power": 9_000.0}
    assert warnings(side("eager", slowed_us=slowed), side("compiled", slowed_us=slowed)) == ()


def test_without_counters_the_reasons_given_between_calls_are_told():
    hot = (sample(slowed_by=("temperature (hardware)",)), sample(seconds=0.7))
    (found,) = warnings(side("eager"), side("compiled", hot))
    assert found.startswith("compiled: the GPU was held back")
    assert "temperature (hardware), in 1 of 2 samples between calls" in found
    once = (*hot, *(sample(seconds=0.8) for _ in range(20)))
    assert warnings(side("eager"), side("compiled", once)) == ()


def test_a_shared_gpu_is_told():
    (found,) = warnings(side("eager"), side("compiled", (sample(other_processes=2),)))
    assert found.startswith("compiled: 2 other processes had the GPU open")


def test_processes_that_cannot_be_counted_are_not_told_as_others():
    unknown = (sample(other_processes=None),)
    assert warnings(side("eager", unknown), side("compiled", unknown)) == ()


def test_clocks_that_differ_between_the_forms_are_told():
    slower = (sample(sm_clock_mhz=1755), sample(sm_clock_mhz=1785, seconds=0.7))
    (found,) = warnings(side("eager"), side("compiled", slower))
    assert "1,980 MHz between A's calls and 1,770 MHz between B's" in found
    assert warnings(side("eager"), side("compiled", (sample(sm_clock_mhz=1890),))) == ()


def test_a_lower_clock_is_said_to_hide_or_to_widen_the_difference():
    slow = (sample(sm_clock_mhz=1725),)

    def timed(each: Side, us: float) -> Side:
        assert each.form is not None
        return replace(each, form=replace(each.form, wall_us=(us,) * 10))

    (hides,) = warnings(timed(side("eager"), 1300.0), timed(side("compiled", slow), 1200.0))
    assert hides.endswith("compiled is faster at the lower clock, which hides a part of the difference.")
    (widens,) = warnings(timed(side("eager"), 1200.0), timed(side("compiled", slow), 1300.0))
    assert widens.endswith("a part of the difference may be the clock's, as far as compiled waits for the GPU.")
    (eager_hides,) = warnings(timed(side("eager", slow), 1200.0), timed(side("compiled"), 1300.0))
    assert "eager is faster at the lower clock, which hides" in eager_hides


def test_a_throttled_gpu_is_grave_and_clean_runs_have_nothing_grave():
    def judged(slowed_us: float) -> tuple[str, ...]:
        a, b = (side(name, slowed_us={"power": slowed_us}) for name in ("eager", "compiled"))
        return compare(a, replace(b, path="other")).grave

    (told,) = judged(250_000.0)
    assert told.startswith("eager and compiled: the GPU was held back")
    assert judged(0.0) == ()


def test_runs_without_a_state_are_compared_as_before():
    bare = make_side("eager", form=make_form())
    assert warnings(bare, make_side("compiled", form=make_form())) == ()


def test_a_counter_of_one_limit_does_not_hide_another():
    braked = (sample(slowed_by=("power brake", "power limit (software)")), sample(seconds=0.7))
    found = warnings(side("eager"), side("compiled", braked, {"power": 300_000.0, "temperature": 0.0}))
    assert any("by its power limit for 30 % of the time" in each for each in found)
    assert any("power brake, in 1 of 2 samples" in each for each in found)
    assert not any("power limit (software)" in each for each in found)
