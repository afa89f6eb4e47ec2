import io
import re
import time

import pytest
from rich.console import Console

from tracekit.measure import progress


def test_without_a_terminal_each_phase_is_a_line_with_its_seconds() -> None:
    out = io.StringIO()
    with progress.shown(Console(file=out)) as told:
        told.phase("building")
        told.phase("timing", total=3)
        told.advance()
    lines = out.getvalue().splitlines()
    assert lines[0] == "building ..."
    assert lines[1].startswith("building: ")
    assert lines[2] == "timing ..."
    assert lines[3].startswith("timing: ")


def test_a_plan_numbers_its_stages_in_each_line() -> None:
    out = io.StringIO()
    with progress.shown(Console(file=out)) as told:
        told.stages(["build", "timing", "outputs"])
        told.stage("build")
        told.phase("building")
        told.stage("outputs")
        told.phase("comparing")
        told.phase("writing")
    begun = [line for line in out.getvalue().splitlines() if line.endswith("...")]
    assert begun == ["1 of 3, building ...", "3 of 3, comparing ...", "3 of 3, writing ..."]


def test_what_is_left_is_said_only_where_something_is_known() -> None:
    now = [0.0]
    stages = progress.Stages(lambda: now[0])
    stages.stage("recording eager")
    assert stages.left() == ""
    now[0] = 8.0
    stages.stage("recording compiled", like=("recording eager",))
    now[0] = 11.0
    assert stages.left() == ", about 5 s left"
    now[0] = 17.0
    assert stages.left() == ""
    stages.stage("process 1", like=("recording eager", "never measured"))
    assert stages.left() == ""
    stages.stage("timing", at_most_seconds=30.0)
    now[0] = 27.0
    assert stages.left() == ", at most 20 s left"
    stages.stage("counted")
    assert (stages.left(2, 100, 4.0), stages.left(10, 100, 4.0)) == ("", ", about 36 s left")


def test_of_a_plan_one_line_stands_on_a_terminal() -> None:
    out = io.StringIO()
    with progress.shown(Console(file=out, force_terminal=True, width=120)) as told:
        told.stages(["build", "timing"])
        for stage in ("build", "timing"):
            told.stage(stage, at_most_seconds=30)
            told.phase(f"doing {stage}")
    drawn = out.getvalue()
    last = drawn[drawn.rindex("2 of 2, doing timing") - 200 :]
    assert "1 of 2, doing build" in drawn and "at most 30 s left" in drawn
    assert "1 of 2" not in last


def test_a_long_phase_says_that_it_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "HEARTBEAT_SECONDS", 0.05)
    out = io.StringIO()
    with progress.shown(Console(file=out)) as told:
        told.phase("compiling")
        told.detail("compilation 2")
        until = time.monotonic() + 60
        while not re.search(r"compiling: \d+ s so far, compilation 2", out.getvalue()) and time.monotonic() < until:
            time.sleep(0.02)
    assert time.monotonic() < until, out.getvalue()


def test_on_a_terminal_the_phase_its_detail_and_its_count_are_shown() -> None:
    out = io.StringIO()
    with progress.shown(Console(file=out, force_terminal=True, width=120)) as told:
        told.phase("compiling")
        told.detail("compilation 2")
        told.phase("timing", total=2)
        told.advance()
        told.advance()
    drawn = out.getvalue()
    assert "compiling" in drawn
    assert "compilation 2" in drawn
    assert "2/2" in drawn


def test_the_live_display_is_put_away_when_the_work_fails() -> None:
    out = io.StringIO()

    def fail() -> None:
        with progress.shown(Console(file=out, force_terminal=True)) as told:
            told.phase("building")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    # The cursor, hidden while the bars are drawn, is shown again.
    assert out.getvalue().rindex("\x1b[?25h") > out.getvalue().rindex("\x1b[?25l")
