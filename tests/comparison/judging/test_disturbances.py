from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.sides import make_form, make_side

from tracekit.comparison.judging.disturbances import find_drift_of_ratio, find_unsteady_speeds, ratio_change
from tracekit.comparison.judging.fairness import find_unfairness
from tracekit.model.comparison import Side
from tracekit.model.gpu import GpuSample, GpuState, Moment
from tracekit.model.note import Note

Times = np.ndarray


def sample(moment: Moment = "during", seconds: float = 0.5, **changes: Any) -> GpuSample:
    clocks: dict[str, Any] = {"sm_clock_mhz": 1980, "memory_clock_mhz": 2619}
    quiet = {"power_w": 400.0, "temperature_c": 50, "slowed_by": (), "other_processes": 0}
    return GpuSample(moment, seconds, **{**clocks, **quiet, **changes})


def side(label: str, *during: GpuSample, slowed_us: dict[str, float] | None = None, us: float | None = None) -> Side:
    """Sampled once where nothing else is said; all calls took `us`."""
    samples = (sample("before", 0.0, sm_clock_mhz=345), *(during or (sample(),)), sample("after", 1.0))
    form = make_form() if us is None else make_form("eager", (us,) * 10)
    return make_side(label, form=replace(form, gpu_state=GpuState("nvml", samples, slowed_us, 700.0)))


def noted(a: Side, b: Side) -> tuple[Note, ...]:
    return find_unfairness(a, replace(b, path="other"))


@pytest.mark.parametrize("power_us", [0.0, 9_000.0])
def test_a_quiet_gpu_and_a_limit_that_hardly_held_are_nothing_to_mention(power_us: float) -> None:
    slowed = {"power": power_us, "temperature": 0.0}
    assert noted(side("eager", slowed_us=slowed), side("compiled", slowed_us=slowed)) == ()


def test_a_power_limit_is_told_once_with_the_time_it_held() -> None:
    slowed = {"power": 250_000.0, "temperature": 0.0}
    found = noted(side("eager", slowed_us=slowed), side("compiled", slowed_us=slowed))
    facts = {"sides": ["eager", "compiled"], "limit": "power", "share": 0.25}
    assert found == (Note("throttled", facts=facts, grave=True),)


def test_without_counters_the_reasons_given_between_calls_are_told() -> None:
    hot = (sample(slowed_by=("temperature (hardware)",)), sample(seconds=0.7))
    (found,) = noted(side("eager"), side("compiled", *hot))
    facts = {"sides": ["compiled"], "reason": "temperature (hardware)", "samples": 1, "of_samples": 2}
    assert found == Note("throttled_in_samples", facts=facts, grave=True)
    once = (*hot, *(sample(seconds=0.8) for _ in range(20)))
    assert noted(side("eager"), side("compiled", *once)) == ()


def test_a_counter_of_one_limit_does_not_hide_another() -> None:
    braked = (sample(slowed_by=("power brake", "power limit (software)")), sample(seconds=0.7))
    slowed = {"power": 300_000.0, "temperature": 0.0}
    one, other = noted(side("eager"), side("compiled", *braked, slowed_us=slowed))
    assert (one.code, one.facts["limit"], one.facts["share"]) == ("throttled", "power", 0.3)
    assert (other.code, other.facts["reason"]) == ("throttled_in_samples", "power brake")


def test_a_shared_gpu_is_told_and_processes_that_cannot_be_counted_are_not() -> None:
    (found,) = noted(side("eager"), side("compiled", sample(other_processes=2)))
    assert found == Note("gpu_shared", facts={"sides": ["compiled"], "processes": 2}, grave=True)
    unknown = sample(other_processes=None)
    assert noted(side("eager", unknown), side("compiled", unknown)) == ()


@pytest.mark.parametrize(
    ("a_mhz", "b_mhz", "a_us", "b_us", "lower", "faster"),
    [
        (1980, 1725, 1300.0, 1200.0, "compiled", "compiled"),
        (1980, 1725, 1200.0, 1300.0, "compiled", "eager"),
        (1725, 1980, 1200.0, 1300.0, "eager", "eager"),
    ],
)
def test_a_lower_clock_hides_or_widens_the_difference(
    a_mhz: int, b_mhz: int, a_us: float, b_us: float, lower: str, faster: str
) -> None:
    (found,) = noted(
        side("eager", sample(sm_clock_mhz=a_mhz), us=a_us), side("compiled", sample(sm_clock_mhz=b_mhz), us=b_us)
    )
    facts = {"sides": ["A", "B"], "clocks_mhz": [a_mhz, b_mhz], "lower": lower, "faster": faster}
    assert found == Note("clocks_differ", facts=facts, grave=True)


def test_clocks_are_the_middle_ones_and_little_is_no_difference() -> None:
    slower = (sample(sm_clock_mhz=1755), sample(sm_clock_mhz=1785, seconds=0.7))
    (found,) = noted(side("eager"), side("compiled", *slower))
    assert found.facts["clocks_mhz"] == [1980, 1770]
    assert noted(side("eager"), side("compiled", sample(sm_clock_mhz=1890))) == ()


def noisy(seed: int = 0) -> Times:
    return 1000 * np.exp(np.random.default_rng(seed).normal(0, 0.004, 60))


def slow(at: slice) -> Times:
    factors = np.ones(60)
    factors[at] = 1.08
    return factors


EVEN = np.ones(60)
DRIFT = np.linspace(1, 1.3, 60)
#: 8 % slower for ten calls at a time, from call to call, for few calls; and far slower for many.
IN_BLOCKS = np.where(np.arange(60) // 10 % 2, 1.08, 1.0)
BY_CHANCE = np.where(np.random.default_rng(2).random(60) < 0.4, 1.08, 1.0)
FAR = np.where((np.arange(60) >= 20) & (np.arange(60) < 40), 1.8, 1.0)


@pytest.mark.parametrize(
    ("a", "b", "change"),
    [
        # What moves both forms moves no ratio.
        (IN_BLOCKS, IN_BLOCKS, 0),
        (DRIFT, DRIFT, 0),
        (DRIFT, EVEN, 0.19),
        (EVEN, DRIFT, 0.19),
        (IN_BLOCKS, EVEN, 0.08),
        # Speeds that change from call to call, of few calls or far apart do not count.
        (BY_CHANCE, EVEN, 0),
        (slow(slice(7)), EVEN, 0),
        (FAR, EVEN, 0),
    ],
)
def test_what_a_ratio_changed_by_itself_counts(a: Times, b: Times, change: float) -> None:
    assert ratio_change(noisy() * a, noisy(seed=1) * b) == pytest.approx(change, abs=0.05 if change else 0)


@pytest.mark.parametrize(("factors", "lasting"), [(BY_CHANCE, False), (IN_BLOCKS, True)])
def test_two_speeds_are_told_and_whether_they_last(factors: Times, lasting: bool) -> None:
    (found,) = find_unsteady_speeds(make_side("a", form=make_form("eager", tuple(noisy() * factors))))
    assert (found.code, found.subject, found.facts["lasting"]) == ("two_speeds", "a", lasting)


def drifts(a: Times, b: Times) -> Sequence[Note]:
    return list(find_drift_of_ratio(noisy() * a, noisy(seed=1) * b))


def test_where_a_form_drifted_its_ratio_is_told_by_thirds() -> None:
    (shared,), (single,) = drifts(DRIFT, DRIFT), drifts(DRIFT, EVEN)
    assert shared.code == "speedup_by_thirds"
    assert shared.facts == pytest.approx({"first": 0.999, "last": 1.002}, abs=5e-4)
    assert single.facts == pytest.approx({"first": 1.044, "last": 1.25}, abs=5e-3)
    assert drifts(EVEN, EVEN) == []
