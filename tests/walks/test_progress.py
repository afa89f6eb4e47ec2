import io
import time

import pytest
from rich.console import Console

from tracekit.walks import progress


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


def test_a_long_phase_says_that_it_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "HEARTBEAT_SECONDS", 0.05)
    out = io.StringIO()
    with progress.shown(Console(file=out)) as told:
        told.phase("compiling")
        told.detail("compilation 2")
        time.sleep(0.3)
    assert "compiling: 0 s so far, compilation 2" in out.getvalue()


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
