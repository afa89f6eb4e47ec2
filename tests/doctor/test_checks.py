from __future__ import annotations

import pytest

from tracekit.doctor import Check
from tracekit.doctor.checks import QUESTIONS, Question, answer


def test_every_check_answers_with_one_line_under_its_name_and_what_mends_it() -> None:
    for question, found in zip(QUESTIONS, map(answer, QUESTIONS), strict=True):
        assert found.name == question.name
        assert found.message and "\n" not in found.message + (found.fix or "")
        assert not found.message.startswith("the check broke"), found
        assert (found.fix is not None) == (found.status in ("warning", "problem")), found


def test_a_check_that_breaks_is_told_as_a_problem() -> None:
    def broken() -> Check:
        raise RuntimeError("CUDA error: unknown\nmore of it")

    found = answer(Question("gpu", broken))
    assert (found.name, found.status) == ("gpu", "problem")
    assert found.message == "the check broke: RuntimeError: CUDA error: unknown"


def test_ctrl_c_stops_the_checks() -> None:
    def interrupted() -> Check:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        answer(Question("gpu", interrupted))
