import math

import pytest

from tracekit.statistics.chance import by_chance, holm


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
