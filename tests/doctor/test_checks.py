from __future__ import annotations

import pytest

from tracekit.doctor.check import Check, ok, problem, skipped, warning
from tracekit.doctor.checks import QUESTIONS, Question, answer


def test_every_check_answers_under_the_name_it_is_announced_with() -> None:
    assert [answer(question).name for question in QUESTIONS] == [question.name for question in QUESTIONS]


def test_no_check_breaks_on_this_machine() -> None:
    assert [found for found in map(answer, QUESTIONS) if "the check broke" in found.message] == []


def test_whatever_is_not_well_comes_with_what_mends_it() -> None:
    for found in map(answer, QUESTIONS):
        assert (found.fix is not None) == (found.status in ("warning", "problem")), found


def test_every_message_is_one_line() -> None:
    for found in map(answer, QUESTIONS):
        assert found.message
        assert "\n" not in found.message + (found.fix or "")


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


def test_only_what_can_be_mended_has_a_fix() -> None:
    assert ok("gpu", "there").fix is None
    assert skipped("gpu", "no torch").fix is None
    assert warning("gpu", "busy", "nvidia-smi").fix == "nvidia-smi"
    assert problem("gpu", "gone", "nvidia-smi").status == "problem"
