"""What ends a program's step."""

import pytest

from tracekit.errors import TracekitError
from tracekit.programs.plan import Asked, Kind, parse_step
from tracekit.programs.steps import Enders


def heard(events: list[tuple[Kind, int]], settled_after: int = 100) -> list[str]:
    enders = Enders()
    return [enders.heard(kind, who, is_settled=number >= settled_after) for number, (kind, who) in enumerate(events)]


def test_calls_are_steps_where_nothing_else_ends_one() -> None:
    assert heard([("call", 1), ("call", 1), ("call", 1)]) == ["the first step", "a step", "a step"]


def test_an_optimizer_takes_the_place_of_calls_and_all_until_then_was_one_step() -> None:
    # Two micro-batches a step.
    events: list[tuple[Kind, int]] = [("call", 1), ("call", 1), ("optimizer", 9)] * 2
    assert heard(events)[2:] == ["the first step", "nothing", "nothing", "a step"]


def test_of_two_optimizers_the_last_ends_the_step() -> None:
    events: list[tuple[Kind, int]] = [("optimizer", 1), ("optimizer", 2)] * 3
    assert heard(events)[1:] == ["the first step", "nothing", "a step", "nothing", "a step"]


def test_a_callable_that_is_called_for_each_of_many_steps_is_the_step_not_what_comes_once_before_them() -> None:
    events: list[tuple[Kind, int]] = [("call", 1), *[("call", 2)] * 4, ("call", 3), *[("call", 2)] * 6]
    told = heard(events)
    assert told[5] == "the first step" and told[-4:] == ["a step"] * 4


def test_once_settled_nobody_new_ends_steps_but_an_optimizer_or_the_program_itself_does() -> None:
    events: list[tuple[Kind, int]] = [("call", 1), ("call", 1), ("call", 5), ("optimizer", 7), ("marked", 0)]
    assert heard(events, settled_after=2) == ["the first step", "a step", "nothing", "the first step", "the first step"]


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        (None, Asked()),
        ("optimizer", Asked("optimizer")),
        ("call", Asked("call")),
        ("span:forward", Asked("span", "forward")),
        ("function:__main__:Painter.paint", Asked("function", "__main__:Painter.paint")),
    ],
)
def test_what_a_step_is_can_be_said(text: str | None, asked: Asked) -> None:
    assert parse_step(text) == asked


@pytest.mark.parametrize("text", ["", "optimiser", "span:", "function:train_step", "function::f", "call:f"])
def test_what_is_none_is_refused_with_what_there_is(text: str) -> None:
    with pytest.raises(TracekitError, match="pass optimizer, call, span:NAME or function:MODULE:NAME"):
        parse_step(text)
