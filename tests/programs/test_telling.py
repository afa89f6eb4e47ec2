"""What is said of a program when it is over."""

import pytest

from tracekit.programs.course import Block, Step
from tracekit.programs.telling import of_compiling, of_paying

STEPS = [
    # Three seconds of it are something else.
    Step(11_001_000.0, 0.0, 1, ("Net",), (), 8_000_000.0),
    *(Step(1000.0, 0.0, 0, ("Net",), ()) for _ in range(3)),
]


def pairs(eager_us: float, compiled_us: float, number: int = 8) -> list[tuple[Block, Block]]:
    noise = [1.0, 1.01, 0.99, 1.02, 0.98, 1.0, 1.01, 0.99]
    return [
        (Block("eager", eager_us * noise[each % 8], (), None), Block("compiled", compiled_us, (), None))
        for each in range(number)
    ]


def test_what_the_first_step_took_and_when_that_has_paid() -> None:
    assert of_compiling(STEPS) == "; step 1 took 11.0 s, 8.00 s of it compiling"
    # 8 s of compiling, 1 ms saved a step.
    assert (
        of_paying(8_000_000.0, pairs(2000.0, 1000.0)) == "; then 2.00× faster than eager: pays after about 8,000 steps"
    )


@pytest.mark.parametrize(
    ("eager_us", "compiled_us", "says"),
    [
        (1000.0, 1250.0, "; then 1.25× slower than eager: never pays"),
        (1000.0, 1000.0, "; then no difference to eager was found"),
    ],
)
def test_a_program_that_compiling_does_not_help_is_told_so(eager_us: float, compiled_us: float, says: str) -> None:
    assert of_paying(8_000_000.0, pairs(eager_us, compiled_us)) == says


def test_of_few_rounds_nothing_is_said() -> None:
    assert of_paying(8_000_000.0, pairs(2000.0, 1000.0, 4)) == ""


def test_a_program_that_read_its_code_from_a_cache_says_nothing_of_compiling() -> None:
    assert of_compiling(STEPS[1:]) == ""
    assert of_paying(0.0, pairs(2000.0, 1000.0)) == "; then 2.00× faster than eager"
