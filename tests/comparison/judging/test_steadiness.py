from __future__ import annotations

import numpy as np
import pytest

from tracekit.comparison.judging.steadiness import find_restlessness, tell_thirds, unshared_change

from ...sides import make_form, make_side

Times = np.ndarray


def noisy(n: int = 60, seed: int = 0) -> Times:
    return 1000 * np.exp(np.random.default_rng(seed).normal(0, 0.004, n))


def in_blocks(n: int = 60) -> Times:
    """8 % slower for ten calls at a time."""
    return np.where(np.arange(n) // 10 % 2, 1.08, 1.0)


def test_what_moves_both_forms_moves_no_ratio():
    assert unshared_change(noisy() * in_blocks(), noisy(seed=1) * in_blocks()) == 0
    drift = np.linspace(1, 1.3, 60)
    assert unshared_change(noisy() * drift, noisy(seed=1) * drift) == 0


def test_a_ratio_that_drifts_says_by_how_much():
    drift = np.linspace(1, 1.3, 60)
    assert unshared_change(noisy() * drift, noisy(seed=1)) == pytest.approx(0.19, abs=0.03)
    assert unshared_change(noisy(), noisy(seed=1) * drift) == pytest.approx(0.19, abs=0.05)


def test_speeds_that_one_form_keeps_for_a_while_count_as_far_as_they_are_apart():
    assert unshared_change(noisy() * in_blocks(), noisy(seed=1)) == pytest.approx(0.08, abs=0.01)


def test_speeds_that_change_from_call_to_call_do_not_count():
    slow = np.random.default_rng(2).random(60) < 0.4
    assert unshared_change(noisy() * np.where(slow, 1.08, 1.0), noisy(seed=1)) == 0


def test_speeds_of_few_calls_or_far_apart_do_not_count():
    few = np.ones(60)
    few[:7] = 1.08
    assert unshared_change(noisy() * few, noisy(seed=1)) == 0
    far = np.ones(60)
    far[20:40] = 1.8
    assert unshared_change(noisy() * far, noisy(seed=1)) == 0


def test_speeds_that_change_from_call_to_call_are_said_to():
    slow = np.random.default_rng(2).random(60) < 0.4
    walls = noisy() * np.where(slow, 1.08, 1.0)
    (changing,) = find_restlessness(make_side("a", form=make_form("eager", tuple(walls))))
    assert (changing.code, changing.subject, changing.facts["lasting"]) == ("two_speeds", "a", False)
    (kept,) = find_restlessness(make_side("a", form=make_form("eager", tuple(noisy() * in_blocks()))))
    assert (kept.code, kept.facts["lasting"]) == ("two_speeds", True)


def test_where_a_form_drifted_its_ratio_is_told_by_thirds():
    drift = np.linspace(1, 1.3, 60)
    (shared,) = tell_thirds(noisy() * drift, noisy(seed=1) * drift)
    assert shared.code == "speedup_by_thirds"
    assert shared.facts == pytest.approx({"first": 0.999, "last": 1.002}, abs=5e-4)
    (alone,) = tell_thirds(noisy() * drift, noisy(seed=1))
    assert alone.facts == pytest.approx({"first": 1.044, "last": 1.25}, abs=5e-3)
    assert tell_thirds(noisy(), noisy(seed=1)) == ()
