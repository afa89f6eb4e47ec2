"""The terminal tells of a sweep in thirty lines."""

import pytest
from tests.sweep.report.showing import sweep_terminal
from tests.traces import ROOT, SWEEP

from tracekit.sweep.commands.showing import load_sweep

from ...report.test_thirty_lines import lines


@pytest.mark.parametrize("width", [60, 80, 100])
def test_a_sweep_is_told_in_thirty_lines_none_wider_than_the_terminal(width: int) -> None:
    most = 30 if width == 100 else 60
    lines(sweep_terminal(load_sweep(ROOT / SWEEP, 1000), "brief", width), width, most)
