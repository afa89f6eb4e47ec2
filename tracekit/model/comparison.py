"""What changed between two sides, A (before, eager) and B (after, compiled). Field names are those of the JSON contract
`tracekit.comparison/1`. All figures are per step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tracekit.model.analysis import Analysis, Severity
from tracekit.model.run import Environment, FormResult, Settings

GroupKind = Literal["unchanged", "fused", "substituted", "defused", "eliminated", "added", "unmatched"]
MatchedBy = Literal["provenance", "anchors", "names", "unmatched"]


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a comparison: a trace's analysis, and what the run folder says of it where there is one.

    `steps` is what every figure is divided by. `form`, `settings` and `environment` are None for a bare trace file.
    """

    label: str
    path: str
    analysis: Analysis
    form: FormResult | None
    settings: Settings | None
    environment: Environment | None

    @property
    def steps(self) -> int:
        return max(self.analysis.window.steps, 1)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Which side is faster, from unprofiled times only. `speedup` is A's wall over B's; `ci95` its 95 % interval.

    `noise_floor` is how far a form differs from itself when measured twice in this run (0.01 = 1 %). All but `result`
    are None when the sides were not timed together.
    """

    result: Literal["faster", "slower", "inconclusive", "not_timed"]
    speedup: float | None
    ci95: tuple[float, float] | None
    noise_floor: float | None
    a_wall_us: float | None
    b_wall_us: float | None


@dataclass(frozen=True, slots=True)
class Deltas:
    """B minus A, per step; None where a side could not be measured."""

    kernels: float | None
    launches: float | None
    busy_us: float | None
    idle_us: float | None


@dataclass(frozen=True, slots=True)
class WaterfallPart:
    kind: Literal["gpu", "idle"]
    label: str
    delta_us: float


@dataclass(frozen=True, slots=True)
class Waterfall:
    """a_us + the parts + residual_us = b_us. `basis` says whether the ends are unprofiled wall times or the trace's."""

    basis: Literal["unprofiled", "trace"]
    a_us: float
    b_us: float
    parts: tuple[WaterfallPart, ...]
    residual_us: float


@dataclass(frozen=True, slots=True)
class GroupMember:
    name: str
    count: float
    total_us: float


@dataclass(frozen=True, slots=True)
class KernelGroup:
    """The kernels of A and of B that do the same work. `where` is file:line or module path, empty where not known."""

    kind: GroupKind
    label: str
    how: MatchedBy
    a: tuple[GroupMember, ...]
    b: tuple[GroupMember, ...]
    delta_count: float
    delta_us: float
    where: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Coverage:
    """Share of GPU time in groups that were matched, 0 to 1."""

    a_time_matched: float
    b_time_matched: float


@dataclass(frozen=True, slots=True)
class Finding:
    code: str
    severity: Severity
    title: str
    evidence: str
    saving_us: float | None
    advice: str | None


@dataclass(frozen=True, slots=True)
class Comparison:
    a: Side
    b: Side
    verdict: Verdict
    deltas: Deltas
    waterfall: Waterfall | None
    groups: tuple[KernelGroup, ...]
    coverage: Coverage | None
    findings: tuple[Finding, ...]
    warnings: tuple[str, ...]
