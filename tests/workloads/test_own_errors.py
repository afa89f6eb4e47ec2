"""Whose is what a call raised?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.sides import make_settings

from tracekit.errors import DoesNotFitError, TheirCodeError
from tracekit.model.run import UserModel
from tracekit.numbers import percent
from tracekit.workloads.own_errors import their_calls

OWN = replace(make_settings(), workload="my_model.py:build", own=UserModel())
IN_PROGRAM = replace(OWN, own=UserModel(in_program=True))


def theirs() -> None:
    raise ValueError("told to fail")


def memory() -> None:
    raise MemoryError("CUDA out of memory")


def ours() -> None:
    percent("many")  # type: ignore[arg-type]


def known() -> None:
    raise DoesNotFitError("said already")


def is_memory(error: BaseException) -> bool:
    return isinstance(error, MemoryError)


def test_what_their_code_raised_is_theirs_with_its_line() -> None:
    with pytest.raises(TheirCodeError, match="raised ValueError: told to fail") as said, their_calls(OWN, is_memory):
        theirs()
    assert "my_model.py:build()" in str(said.value) and str(said.value).endswith("in theirs")
    assert "tracekit/workloads" not in said.value.traceback.replace("tests/workloads", "")
    assert said.value.traceback.splitlines()[-1] == "ValueError: told to fail"


@pytest.mark.parametrize(
    ("settings", "call", "kind"),
    [
        (OWN, memory, MemoryError),
        (OWN, ours, ValueError),
        (OWN, known, DoesNotFitError),
        (IN_PROGRAM, theirs, ValueError),
        (make_settings(), theirs, ValueError),
    ],
)
def test_all_else_is_passed_on(settings: object, call: Callable[[], None], kind: type[Exception]) -> None:
    with pytest.raises(kind) as passed, their_calls(settings, is_memory):  # type: ignore[arg-type]
        call()
    assert type(passed.value) is kind
