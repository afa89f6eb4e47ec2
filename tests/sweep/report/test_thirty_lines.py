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


@pytest.mark.parametrize("width", [100, 140])
def test_rows_of_one_workload_tell_whole_what_is_different(width: int) -> None:
    """What all share stands once, above."""
    shown = sweep_terminal(load_sweep(ROOT / "sweeps" / "h200-qwen2.5-vl", 1000), "brief", width)
    assert shown.startswith("qwen2.5-vl · batch 3 · ")
    rows = [line.strip().partition("  ")[0] for line in shown.splitlines() if " cache  " in line]
    assert rows == [
        "generate, 128 new tokens, dynamic cache",
        "generate, 128 new tokens, static cache",
        "decode, static cache",
    ]
