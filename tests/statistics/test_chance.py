import math

import pytest

from tracekit.statistics.chance import by_chance, holm
from tracekit.statistics.interval import t_quantile


@pytest.mark.parametrize(
    ("t", "freedom", "chance"),
    # Tails of Student's t by its closed forms for 2 and 4 degrees of freedom, and by the normal's.
    [
        (4.0, 2.0, 0.5 - 2.0 / math.sqrt(18)),
        (5.0, 4.0, 0.5 - 0.5 * (5 / math.sqrt(29)) * (1.5 - 0.5 * 25 / 29)),
        (4.26, 1e6, 0.5 * math.erfc(4.26 / math.sqrt(2))),
    ],
)
def test_tails_are_those_of_student_s_t(t: float, freedom: float, chance: float) -> None:
    assert by_chance(t, freedom) == pytest.approx(chance, rel=0.15)


def test_holm_multiplies_the_smallest_by_all_and_the_next_by_one_less() -> None:
    assert holm([0.01, 0.5, 0.001, 0.02]) == pytest.approx([0.03, 0.5, 0.004, 0.04])


@pytest.mark.parametrize(("freedom", "most"), [(44, 1.001), (10, 1.01), (3, 1.03), (1, 1.3)])
def test_of_few_degrees_of_freedom_a_tail_is_never_too_small(freedom: int, most: float) -> None:
    assert 1 <= 2 * by_chance(t_quantile(freedom), freedom) / 0.05 < most
