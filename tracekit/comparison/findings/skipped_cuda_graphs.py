"""Were CUDA graphs asked for and not made?"""

from __future__ import annotations

from tracekit.comparison.commands import profile_command
from tracekit.model.comparison import Comparison, Finding
from tracekit.model.run import Settings
from tracekit.numbers import percent

#: The modes that ask for them, and what compiles alike without.
WITHOUT = {"reduce-overhead": "default", "max-autotune": "max-autotune-no-cudagraphs"}
#: Graphs that start at least this share of the kernels did what was asked.
ENOUGH = 0.5


def find_skipped_cuda_graphs(comparison: Comparison) -> Finding | None:
    """Found when B's mode asks for CUDA graphs on a GPU, and torch skipped some or few kernels are in any."""
    side = comparison.b
    if side.settings is None or side.settings.device == "cpu" or side.settings.mode not in WITHOUT:
        return None
    skips = side.diagnostics.cuda_graph_skips if side.diagnostics else ()
    share = side.graphed_share
    if not skips and (share is None or share >= ENOUGH):
        return None
    reasons = "; ".join(f"{skip.reason or 'reason not told'} ({skip.count} times)" for skip in skips)
    why = f"torch skipped CUDA graphs: {reasons}." if skips else "torch did not say why."
    covered = f" {percent(share, 0)} of the kernels were started by CUDA graphs." if share is not None else ""
    return Finding(
        code="skipped_cuda_graphs",
        severity="warning",
        title=f"CUDA graphs were asked for and {'partly ' if share else ''}skipped",
        evidence=why[:1].upper() + why[1:] + covered,
        saving_us=None,
        advice=_advice(side.settings, reasons),
    )


def _advice(settings: Settings, reasons: str) -> str:
    """Sizes that are any hinder graphs; else the same mode without them has no cost of trying."""
    if "dynamic" in reasons or "symbolic" in reasons:
        return profile_command(settings, {"dynamic": "False"})
    return profile_command(settings, {"mode": WITHOUT[settings.mode]})
