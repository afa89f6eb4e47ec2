"""Does compiled code compute something else than eager code?"""

from __future__ import annotations

from dataclasses import asdict

from tracekit.comparison.commands import profile_command
from tracekit.model.advice import Action
from tracekit.model.comparison import Comparison, Finding


def find_outputs_differ(comparison: Comparison) -> Finding | None:
    """Found when B's outputs are further from the truth than rounding explains (docs/numerics.md). The command it
    advises rounds inside fused kernels as eager does: where that mends it, the order of rounding is the reason."""
    accuracy, settings = comparison.accuracy, comparison.b.settings
    if accuracy is None or accuracy.result != "less_accurate":
        return None
    command = profile_command(settings) if settings else None
    return Finding(
        code="outputs_differ",
        severity="warning",
        facts={"a": comparison.a.label, "b": comparison.b.label, "reason": asdict(accuracy.reason)},
        saving_us=None,
        action=Action("run_again", f"TORCHINDUCTOR_EMULATE_PRECISION_CASTS=1 {command}") if command else None,
    )
