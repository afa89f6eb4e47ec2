"""Were CUDA graphs asked for and not made?"""

from __future__ import annotations

from tracekit.comparison.commands import profile_command
from tracekit.model.action import Action
from tracekit.model.comparison import Comparison, Finding
from tracekit.model.run import Settings

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
    return Finding(
        code="skipped_cuda_graphs",
        severity="warning",
        facts={
            "graphed_share": share,
            "skips": [{"reason": skip.reason, "times": skip.count} for skip in skips],
        },
        saving_us=None,
        action=_action(side.settings, " ".join(skip.reason or "" for skip in skips)),
    )


def _action(settings: Settings, reasons: str) -> Action:
    """Sizes that are any hinder graphs; else the same mode without them has no cost of trying."""
    if "dynamic" in reasons or "symbolic" in reasons:
        return Action("run_again", profile_command(settings, {"dynamic": "False"}))
    return Action("run_again", profile_command(settings, {"mode": WITHOUT[settings.mode]}))
