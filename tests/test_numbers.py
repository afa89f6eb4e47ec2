import math

import pytest

from tracekit import numbers


@pytest.mark.parametrize(
    ("us", "text"),
    [
        (None, "—"),
        (0, "0"),
        (0.25, "0.25 µs"),
        (12.34, "12.3 µs"),
        (999.9, "999.9 µs"),
        (1_000, "1.00 ms"),
        (140_435.9, "140.4 ms"),
        (2_310_000, "2.31 s"),
        (-1_250, "−1.25 ms"),
    ],
)
def test_durations_take_the_unit_of_their_size(us, text):
    assert numbers.duration(us) == text


def test_changes_carry_their_sign():
    assert numbers.duration_change(1.5) == "+1.50 µs"
    assert numbers.duration_change(-1.5) == "−1.50 µs"
    assert numbers.duration_change(0.001) == "0"
    assert numbers.change_with_share(-32_000, 140_000) == "−32.0 ms (−23 %)"
    assert numbers.change_with_share(5, 0) == "+5.00 µs"
    assert numbers.count_change(-3636) == "−3,636"
    assert numbers.count_change(0) == "0"


@pytest.mark.parametrize(
    ("half", "decimals"), [(0.0, 3), (0.0004, 3), (0.03, 2), (0.1, 1), (0.85, 1), (1.0, 0), (23.0, 0)]
)
def test_the_last_digit_of_a_figure_stands_where_the_first_one_of_its_doubt_does(half, decimals):
    assert numbers.decimals_within(half, 3) == decimals


def test_durations_have_the_digits_that_their_ends_support():
    ends = "2.0 ms (1.2\N{NO-BREAK SPACE}to\N{NO-BREAK SPACE}2.9)"
    assert numbers.duration_within(2037, 1200, 2900) == ends
    assert numbers.duration_within(2037, 1200, 2900, ends=False) == "2.0 ms"
    change = numbers.duration_within(-130, -580, 320, signed=True).replace("\N{NO-BREAK SPACE}", " ")
    assert change == "−130 µs (−580 to +320)"
    assert numbers.duration_within(-0.4, -3.4, 2.6, signed=True, ends=False) == "0 µs"
    assert numbers.duration_within(2037, 2037, 2037) == numbers.duration(2037)
    assert numbers.duration_within(0, 0, 0, signed=True) == "0"


def test_counts_have_no_decimals():
    assert numbers.count(2390.0) == "2,390"
    assert numbers.count(6704.6) == "6,705"
    assert numbers.count(0.25) == "<1"
    assert numbers.count_change(-4430.6) == "−4,431"


def test_what_was_not_measured_is_never_zero():
    for shown in (
        numbers.duration,
        numbers.duration_change,
        numbers.count,
        numbers.count_change,
        numbers.percent,
        numbers.points_change,
        numbers.times,
        numbers.size,
        numbers.size_change,
    ):
        assert shown(None) == "—"
    assert numbers.change_with_share(None, 3.0) == "—"


def test_sizes_take_the_unit_of_their_size():
    assert numbers.size(512) == "512 B"
    assert numbers.size(2048) == "2.00 KiB"
    assert numbers.size(36_721_970_380) == "34.2 GiB"
    assert numbers.size_change(-1024) == "−1.00 KiB"
    assert numbers.percent(0.1234) == "12.3 %"
    assert numbers.points_change(-0.09) == "−9.0 points"
    assert numbers.times(1.2951) == "1.30×"
    assert numbers.times(1.0049) == "1.005×"


def test_parameters_are_counted_as_models_are_named():
    counted = [numbers.parameter_count(n) for n in (640, 1_536, 83_819_683, 11_901_408_320)]
    assert counted == ["640", "1.5 K", "83.8 M", "11.9 B"]


def test_a_break_even_that_may_never_come_has_no_end():
    assert [numbers.calls_span(*ends) for ends in ((860.5, 931.2), (860.5, math.inf), (math.inf, math.inf))] == [
        "861 to 932",
        "861 or more",
        "never",
    ]
