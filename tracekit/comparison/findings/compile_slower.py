"""Is the compiled form slower than the eager one?"""

from __future__ import annotations

from tracekit.comparison.commands import run_again
from tracekit.model.comparison import Comparison, Finding


def find_compile_slower(comparison: Comparison) -> Finding | None:
    """Found only when the verdict says so and B is known to be the compiled form. The saving is that of going back."""
    verdict, form = comparison.verdict, comparison.b.form
    if verdict.result != "slower" or not (form and form.name == "compiled"):
        return None
    if verdict.a_wall_us is None or verdict.b_wall_us is None or verdict.speedup is None:
        raise AssertionError("a verdict of slower comes with both walls and their ratio")
    # CUDA graphs, where the GPU waits for longer than was lost: they shorten nothing else. On a CPU there are none.
    settings, idle_us = comparison.b.settings, comparison.b.unprofiled_idle_us
    lost_us = verdict.b_wall_us - verdict.a_wall_us
    action = None
    if settings and settings.device != "cpu" and settings.mode == "default" and (idle_us is None or idle_us > lost_us):
        action = run_again(settings, {"mode": "reduce-overhead"})
    # By the ratio within rounds, on which the verdict stands: the medians need not differ by the same.
    saving_us = verdict.b_wall_us * (1 - verdict.speedup)
    return Finding(
        code="compile_slower",
        severity="warning",
        facts={"a_wall_us": verdict.a_wall_us, "b_wall_us": verdict.b_wall_us},
        saving_us=saving_us,
        action=action,
    )
