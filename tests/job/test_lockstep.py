"""What the calls of two ranks take by the clock of each, with known truths."""

from pathlib import Path
from statistics import median

import pytest
from tests.forked_ranks import found_by_ranks

from tracekit.job.measuring import find_slowest

IMPORTS = "import time\nfrom tracekit.job.lockstep import Lockstep"
#: Each rank sleeps so many milliseconds a call, and begins it so many late.
CALLS = """
ranks, times = Lockstep(60), []
for _ in range(15):
    began = ranks.begin()
    if {late}[rank]:
        time.sleep({late}[rank] / 1e3)
        began = time.perf_counter_ns()
    time.sleep({sleeps}[rank] / 1e3)
    times.append(ranks.took(began, time.perf_counter_ns()))
found = ranks.gathered(times)
"""


def times_us(folder: Path, sleeps: tuple[int, int], late: tuple[int, int] = (0, 0)) -> tuple[list[float], ...]:
    """Of each call, that of the job, and each rank's own."""
    pytest.importorskip("torch")
    found = found_by_ranks(IMPORTS, CALLS.format(sleeps=sleeps, late=late), folder)
    walls = [wall for wall, _ in found[0]]
    assert walls == [wall for wall, _ in found[1]]
    return walls, *([own for _, own in each] for each in found)


def test_a_rank_that_takes_5_ms_more_is_the_slowest_and_takes_so_much_more(tmp_path: Path) -> None:
    walls, one, other = times_us(tmp_path, sleeps=(1, 6))
    assert median(b - a for a, b in zip(one, other, strict=True)) == pytest.approx(5000, abs=1000)
    assert median(find_slowest([one, other])) == 1
    assert all(wall >= max(each) for wall, *each in zip(walls, one, other, strict=True))


def test_a_rank_that_ended_before_another_was_woken_has_taken_its_own_time(tmp_path: Path) -> None:
    for own in times_us(tmp_path, sleeps=(2, 2), late=(0, 5)):
        assert median(own) == pytest.approx(2000, abs=500)


def test_ranks_that_took_the_same_are_the_slowest_by_turns() -> None:
    assert list(find_slowest([[3.0, 1.0, 5.0, 4.0], [3.0, 2.0, 4.0, 4.0]])) == [0, 1, 0, 1]
