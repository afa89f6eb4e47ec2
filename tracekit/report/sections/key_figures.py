"""The few figures to remember of a comparison."""

from __future__ import annotations

from tracekit.model.comparison import Comparison
from tracekit.numbers import change_with_share, count, duration, percent, times
from tracekit.report.sections.overview import shared_basis

#: What it is, its change, and from what to what.
KeyFigure = tuple[str, str, str]


def key_figures(comparison: Comparison) -> tuple[KeyFigure, ...]:
    """The speed-up, times, idle time and kernels: those that are known."""
    a, b, verdict, basis = comparison.a, comparison.b, comparison.verdict, shared_basis(comparison)
    a_idle, b_idle = a.idle_us(basis), b.idle_us(basis)
    figures = []
    if verdict.speedup is not None:
        spread = f"95 % interval {verdict.ci95[0]:.3f} to {verdict.ci95[1]:.3f}" if verdict.ci95 else "no interval"
        figures.append(("Speed-up", times(verdict.speedup), spread))
    # The speed-up is of all processes that timed the forms, what stands beside it of the one that was recorded.
    wall = "Wall time, recorded process" if (verdict.processes or 1) > 1 else "Wall time"
    for label, one, other in ((wall, a.wall_us, b.wall_us), ("GPU busy", a.busy_us, b.busy_us)):
        if one is not None and other is not None:
            figures.append((label, change_with_share(other - one, one), f"{duration(one)} → {duration(other)}"))
    if a_idle is not None and b_idle is not None:
        ends = f"{duration(a_idle)} → {duration(b_idle)}"
        figures.append(
            (
                "GPU idle" if basis == "unprofiled" else "GPU idle, as recorded",
                change_with_share(b_idle - a_idle, a_idle),
                ends,
            )
        )
    if a.analysis.kernels and b.analysis.kernels:
        one, other = a.analysis.kernels.count / a.steps, b.analysis.kernels.count / b.steps
        change = percent(other / one - 1, 0).replace("-", "\N{MINUS SIGN}") if one else count(other)
        figures.append(("Kernels", change if change.startswith("\N{MINUS SIGN}") else f"+{change}", _arrow(one, other)))
    return tuple(figures)


def _arrow(a: float, b: float) -> str:
    return f"{count(a)} → {count(b)}"
