"""The course of measuring, driven by steps whose times are known."""

import itertools
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from tracekit.model.run import FormName
from tracekit.model.timing import StoppingRule
from tracekit.programs import course
from tracekit.programs.course import Block, Course, Found, Step, paired
from tracekit.programs.manifest import LEFT_OUT
from tracekit.programs.telling import alone_noted
from tracekit.programs.together import Together

US = {"eager": 3000.0, "compiled": 1000.0}


class Unrecorded:
    """In place of a recording: waits for as many steps."""

    def __init__(self, *about: Any) -> None:
        pass

    @contextmanager
    def session(self) -> Iterator[None]:
        yield

    def steps(self, count: int, *, say_their_beginning: bool) -> Iterator[None]:
        assert not say_their_beginning
        for _ in range(count + max(count - 1, 1)):
            yield


class Driven:
    """A program whose steps take what they take by variant, unless `step` says something else of one."""

    def __init__(
        self, forms: tuple[FormName, ...] = course.FORMS, budget: float = 30.0, *, asked: bool = False
    ) -> None:
        self.form: FormName = "compiled"
        self.alone: str | None = None
        self.made: list[FormName] = []
        self.found = Found()
        self.course = Course(
            self.found,
            forms,
            lambda device: StoppingRule(None, 0.01, budget, 10),
            0,
            Together(),
            lambda: "cpu",
            lambda label: label != "helper",
            self._switch,
            lambda *about: None,
            lambda: None,
            lambda: None,
            says_its_beginning=False,
            spends_budget=asked,
        )

    def _switch(self, form: FormName, alone: str | None) -> None:
        self.form, self.alone = form, alone

    def run(self, step: Callable[[int, FormName], Step], most: int = 20_000) -> bool:
        """Whether the course came to its end."""
        waiting = self.course.run()
        next(waiting)
        for number in range(most):
            self.made.append(self.form)
            try:
                waiting.send(step(number, self.form))
            except StopIteration:
                return True
        waiting.close()
        return False


def usual(us: float, **more: Any) -> Step:
    return Step(**{"us": us, "before_us": 10.0, "compilations": 0, "calls": ("Net",), "shapes": ((2, 3),), **more})


@pytest.fixture(autouse=True)
def _unrecorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(course, "ProgramRecording", Unrecorded)


def speedup(found: Found) -> float:
    pairs = paired(found.blocks)
    return sum(eager.us / compiled.us for eager, compiled in pairs) / len(pairs)


def test_blocks_of_both_variants_give_their_ratio_and_the_program_goes_on_compiled() -> None:
    noise = random.Random(1)
    driven = Driven()
    assert driven.run(lambda number, form: usual(US[form] * noise.gauss(1, 0.005), compilations=number == 0))
    assert speedup(driven.found) == pytest.approx(3, rel=0.01)
    assert driven.form == "compiled" and driven.found.recordings.keys() == {
        (form, kind) for form in course.FORMS for kind in ("light", "rich")
    }
    assert driven.found.stopped == "target reached" or driven.found.stopped == "most rounds"
    # The GPU was waited for at the ends of blocks alone: the later ones have many steps.
    assert driven.found.steps_of_block >= 16


def test_nothing_is_switched_before_three_steps_compiled_nothing() -> None:
    driven = Driven()
    driven.run(lambda number, form: usual(US[form], compilations=number in (0, 3)), most=60)
    assert driven.made[:7] == ["compiled"] * 7
    assert len(driven.found.first) == 7


def test_a_block_in_which_something_was_compiled_and_one_with_a_checkpoint_between_do_not_count() -> None:
    driven = Driven()
    late: set[str] = set()

    def step(number: int, form: FormName) -> Step:
        if number == 40:
            return usual(90_000.0, compilations=1)
        if number == 80:
            return usual(500_000.0, before_us=499_000.0)
        return usual(US[form])

    driven.run(step)
    late.update(block.left_out for block in driven.found.blocks if block.left_out)
    assert late <= {"compiled", "late"} and late
    assert speedup(driven.found) == pytest.approx(3)


def test_of_blocks_that_do_not_count_it_is_kept_what_was_seen() -> None:
    """A block is a step or two long at first."""
    seen = set()
    for odd in (usual(1000.0, compilations=1), usual(500_000.0, before_us=499_000.0), usual(9000.0, astray=True)):
        driven, blocks = Driven(), list[Block]()

        def step(number: int, form: FormName, odd: Step = odd) -> Step:
            return odd if 40 <= number < 60 else usual(US[form])

        driven.run(step)
        blocks = [block for block in driven.found.blocks if block.left_out]
        seen.add(blocks[0].left_out)
    assert seen == {*LEFT_OUT}


def test_steps_of_changing_shapes_are_paired_by_their_shapes() -> None:
    draw = random.Random(3)

    def step(number: int, form: FormName) -> Step:
        length = draw.choice((1, 2, 8))
        return usual(US[form] * length, shapes=((length, 3),))

    driven = Driven()
    driven.run(step)
    assert driven.found.steps_of_block == 1
    assert all(eager.work == compiled.work for eager, compiled in paired(driven.found.blocks))
    assert speedup(driven.found) == pytest.approx(3)


def test_where_eager_does_not_fit_the_compiled_program_is_measured_alone() -> None:
    driven = Driven()

    def step(number: int, form: FormName) -> Step:
        if form == "eager":
            driven.course.against_eager = "out of memory in eager Net"
        return usual(US[form])

    assert driven.run(step)
    assert driven.found.no_eager == "out of memory in eager Net"
    assert {block.form for block in driven.found.blocks} == {"compiled"}
    assert driven.made.count("eager") <= 1


def test_without_eager_no_step_is_switched() -> None:
    driven = Driven(forms=("compiled",))
    assert driven.run(lambda number, form: usual(US[form]))
    assert set(driven.made) == {"compiled"} and driven.found.blocks


def test_of_several_callables_each_alone_is_eager_and_told() -> None:
    noise, driven = random.Random(1), Driven()
    eager_us = {"Encoder": 3000.0, "Decoder": 900.0}

    def step(number: int, form: FormName) -> Step:
        eager = [each for each in eager_us if form == "eager" and driven.alone in (None, each)]
        us = sum(eager_us[each] if each in eager else 1000.0 for each in eager_us)
        return usual(us * noise.gauss(1, 0.002), calls=("Encoder", "helper", "Decoder"))

    assert driven.run(step)
    assert speedup(driven.found) == pytest.approx(3900 / 2000, rel=0.01)
    ratios = {
        label: sum(eager.us / compiled.us for eager, compiled in pairs) / len(pairs)
        for label, pairs in driven.found.alone.items()
    }
    assert ratios == {"Encoder": pytest.approx(2, rel=0.01), "Decoder": pytest.approx(0.95, rel=0.01)}
    assert (driven.form, driven.alone) == ("compiled", None)
    assert [line.split(" (")[0] for line in (each.long() for each in alone_noted(driven.found))] == [
        "compiling Encoder makes the step 2.00× faster in this process",
        "compiling Decoder makes the step 1.05× slower in this process",
    ]


def test_a_callable_that_runs_out_of_memory_alone_ends_looking_at_each() -> None:
    driven = Driven()

    def step(number: int, form: FormName) -> Step:
        if driven.alone:
            driven.course.against_eager = "out of memory in eager Encoder"
        return usual(US[form], calls=("Encoder", "Decoder"))

    assert driven.run(step)
    assert not any(driven.found.alone.values())
    assert driven.found.no_eager is None and driven.form == "compiled"


@pytest.mark.parametrize(
    ("asked", "rounds", "why"), [(False, course.MOST_ROUNDS, "most rounds"), (True, 100, "budget spent")]
)
def test_a_time_budget_that_was_asked_for_is_spent_and_the_default_leaves_short_programs_their_recordings(
    asked: bool, rounds: int, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A round takes a second.
    monkeypatch.setattr(course, "time", SimpleNamespace(monotonic=itertools.count().__next__))
    noise, driven = random.Random(1), Driven(budget=100.0, asked=asked)
    assert driven.run(lambda number, form: usual(US[form] * noise.lognormvariate(0, 1)))
    assert (len(driven.found.blocks), driven.found.stopped) == (2 * rounds, why)
    assert driven.found.recordings


def test_without_a_budget_only_the_first_steps_are_watched() -> None:
    driven = Driven(budget=0.0)
    assert driven.run(lambda number, form: usual(US[form]))
    assert len(driven.made) == 3 and not driven.found.blocks


def test_blocks_without_a_partner_of_the_same_work_are_in_no_pair() -> None:
    blocks = [
        Block("eager", 3.0, ("a",), None),
        Block("compiled", 1.0, ("b",), None),
        Block("compiled", 2.0, ("a",), None),
        Block("eager", 9.0, ("b",), "late"),
    ]
    assert paired(blocks) == [(blocks[0], blocks[2])]


def test_eager_begins_with_steps_of_its_own_that_are_kept() -> None:
    driven = Driven()
    driven.run(lambda number, form: usual(US[form]))
    assert driven.found.first_eager_us == [US["eager"]] * 2


def test_an_eager_loop_that_is_slower_between_its_steps_is_no_interruption() -> None:
    driven = Driven()
    driven.run(lambda number, form: usual(US[form] + 11_000, before_us=11_000.0 if form == "eager" else 10.0))
    assert not [block for block in driven.found.blocks if block.left_out]
