"""What is said of a program when it is over."""

import random

import pytest

from tracekit.programs.course import MOST_ALONE, Block, Found, Step, paired
from tracekit.programs.telling import alone_noted, of_compiling, of_paying

STEPS = [
    # Three seconds of it are something else.
    Step(11_001_000.0, 0.0, 1, ("Net",), (), 8_000_000.0),
    *(Step(1000.0, 0.0, 0, ("Net",), ()) for _ in range(3)),
]


def pairs(eager_us: float, compiled_us: float, number: int = 40, noise: float = 0.01) -> list[tuple[Block, Block]]:
    drawn = random.Random(1)
    return [
        (Block("eager", eager_us * drawn.gauss(1, noise), (), None), Block("compiled", compiled_us, (), None))
        for _ in range(number)
    ]


def found(
    eager_us: float, compiled_us: float, number: int = 40, first_us: float = 8_001_000.0, noise: float = 0.01
) -> Found:
    blocks = [block for pair in pairs(eager_us, compiled_us, number, noise) for block in pair]
    first = [Step(first_us, 0.0, 1, ("Net",), ()), *STEPS[1:]]
    return Found(blocks=blocks, first=first, first_eager_us=[eager_us] * 2)


def test_what_the_first_step_took_and_when_that_has_paid() -> None:
    assert of_compiling(STEPS) == "; step 1 took 11.0 s, 8.00 s of it compiling"
    # 8 s more than a step takes, 1 ms saved a step.
    faster = "; then 2.00× faster than eager in this process"
    assert of_paying(found(2000.0, 1000.0)) == f"{faster}: pays after about 8,000 steps"
    # What is compiled later is paid for too.
    later = found(2000.0, 1000.0)
    later.late_us = [1_001_000.0] * 2
    assert of_paying(later).endswith("pays after about 10,000 steps")


@pytest.mark.parametrize(
    ("eager_us", "compiled_us", "says"),
    [
        (1000.0, 1250.0, "; then 1.25× slower than eager in this process"),
        (1000.0, 1000.0, "; then no difference: within 1 %"),
        (1000.0, 1012.0, "; then no difference beyond 2 %"),
    ],
)
def test_a_program_that_compiling_does_not_help_is_told_so(eager_us: float, compiled_us: float, says: str) -> None:
    assert of_paying(found(eager_us, compiled_us)) == says


def test_a_ratio_that_eager_reaches_against_itself_is_no_difference() -> None:
    """The interval leaves 1 out; eager's own blocks are further apart."""
    noisy = found(1000.0, 900.0, noise=0.3)
    assert of_paying(noisy).startswith("; then not enough to tell: 1.0")


def test_where_rounds_that_do_not_count_change_the_answer_it_is_not_enough_to_tell() -> None:
    """A step in sixteen is a hundred times as long in eager code."""
    rare = found(1000.0, 1000.0, 16)
    rare.blocks[8] = Block("eager", 100_000.0, (), None)
    assert of_paying(rare) == "; then not enough to tell, 0.999× as fast without outliers and 1.33× with them"


def test_where_rounds_that_do_not_count_leave_the_answer_both_are_told() -> None:
    rare = found(2000.0, 1000.0, 16)
    rare.blocks[8] = Block("eager", 100_000.0, (), None)
    faster = "; then 2.00× faster than eager in this process (2.55× as fast with outliers): pays"
    assert of_paying(rare).startswith(faster)
    (told,) = alone_noted(Found(alone={"Net (a.py:1)": paired(rare.blocks)}))
    assert told.long().startswith("compiling Net (a.py:1) makes the step 2.00× faster in this process (")
    assert told.long().endswith("as fast; 2.55× with outliers)")


def test_an_outlier_that_hides_what_is_within_the_noise_is_not_enough_to_tell() -> None:
    noisy = found(1030.0, 1000.0, 10, noise=0.002)
    noisy.blocks[8] = Block("eager", 700.0, (), None)
    assert of_paying(noisy).startswith("; then not enough to tell")


@pytest.mark.parametrize(("eager_us", "noise"), [(1020.0, 0.01), (1000.0, 0.05), (1000.0, 0.001), (1500.0, 0.01)])
def test_each_callable_is_judged_as_the_whole_is(eager_us: float, noise: float) -> None:
    some = pairs(eager_us, 1000.0, 20, noise)
    (told,) = alone_noted(Found(alone={"Net (a.py:1)": some}))
    whole = of_paying(found(eager_us, 1000.0, 20, noise=noise))
    for words in ("not enough to tell", "no difference", "faster"):
        assert (words in told.long()) == (words in whole)


def test_of_few_rounds_nothing_is_said() -> None:
    assert of_paying(found(2000.0, 1000.0, 4)) == ""
    # Of eight what processes differ by decides.
    assert of_paying(found(1100.0, 1000.0, 8)).startswith("; then not enough to tell: 0.9")


def test_a_program_that_read_its_code_from_a_cache_says_nothing_of_compiling() -> None:
    assert of_compiling(STEPS[1:]) == ""
    assert of_paying(found(2000.0, 1000.0, first_us=1000.0)) == "; then 2.00× faster than eager in this process"


def test_of_several_callables_each_is_told_or_that_it_was_not() -> None:
    alone = {f"part_{at} (p.py:{at})": pairs(2000.0, 1000.0 * at) for at in (1, 2)} | {"part_3 (p.py:3)": []}
    alone |= {f"more_{at} (p.py)": [] for at in range(MOST_ALONE)}
    told = [each.long() for each in alone_noted(Found(alone=alone))]
    assert told[0].startswith("compiling part_1 (p.py:1) makes the step 2.00× faster in this process (2.0")
    assert told[1:3] == [
        "compiling part_2 (p.py:2): no difference, 0.998× to 1.004× as fast",
        "compiling part_3 (p.py:3): not told apart, too few rounds",
    ]
    assert told[-1] == "3 more callables not looked at one by one"
