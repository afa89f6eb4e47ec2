"""How long `tracekit profile` times: what was asked for, with the defaults filled in."""

from __future__ import annotations

from dataclasses import dataclass

from tracekit.errors import TracekitError
from tracekit.model.run import Settings
from tracekit.model.timing import StoppingRule
from tracekit.model.workload import Request

#: Half the width of the speed-up's interval to reach, in percent.
TARGET_PERCENT = 1.0
#: How long to try. A CPU run is a demonstration, and its times scatter too much to wait for.
GPU_SECONDS = 30.0
CPU_SECONDS = 3.0


@dataclass(frozen=True)
class TimingPlan:
    """What the user asked of the timing; None leaves it to the defaults."""

    target_percent: float | None = None
    budget_seconds: float | None = None
    repeats: int = 0
    startup: bool = False

    @property
    def needs_processes(self) -> bool:
        return self.startup or self.repeats > 0


def plan_timing(
    iterations: bool, target_percent: float | None, budget_seconds: float | None, repeats: int, startup: bool
) -> TimingPlan:
    """The plan. Raises TracekitError where a number of calls was asked for, and a rule to find it too."""
    if iterations and (target_percent is not None or budget_seconds is not None):
        raise TracekitError("--iterations is a fixed number of calls: leave it out, or --target and --time-budget")
    return TimingPlan(target_percent, budget_seconds, repeats, startup)


def stopping_rule(plan: TimingPlan, request: Request, settings: Settings) -> StoppingRule:
    """When to stop timing a run of these settings, whose `iterations` are the fewest that may reach the target."""
    default = GPU_SECONDS if settings.device != "cpu" else CPU_SECONDS
    return StoppingRule(
        rounds=request.iterations,
        target=(plan.target_percent or TARGET_PERCENT) / 100,
        budget_seconds=plan.budget_seconds or default,
        least=settings.iterations,
    )
