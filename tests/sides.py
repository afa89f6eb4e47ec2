"""Sides of a comparison made by hand: small, with figures that add up. And what findings on them advise."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from tracekit.model import analysis as analyses
from tracekit.model.advice import Command
from tracekit.model.comparison import Finding, Side
from tracekit.model.compilation import Diagnostics
from tracekit.model.run import CompileFacts, Component, Environment, FormName, FormResult, Run, Settings
from tracekit.model.timing import FormTiming, ProcessTimes
from tracekit.names import is_triton

COPIES = ("memcpy", "memset")
#: Ten rounds.
ORDER: tuple[FormName, ...] = ("eager", "compiled") * 10

#: Eager: a product, an attention kernel and element-wise work, for two steps.
EAGER = {
    "gemm_128x64": ("gemm", 20, 1000.0),
    "flash_fprop": ("attention", 4, 200.0),
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, float>(int)": (
        *("pointwise", 40, 400.0),
    ),
    "layer_norm": ("normalization", 10, 120.0),
    "Memcpy HtoD (Pageable -> Device)": ("memcpy", 2, 6.0),
}

#: Compiled: the same library kernels, element-wise work fused.
COMPILED = {
    "gemm_128x64": ("gemm", 20, 1010.0),
    "flash_fprop": ("attention", 4, 202.0),
    "triton_poi_fused_add_0": ("triton", 10, 110.0),
    "triton_red_fused_layer_norm_1": ("triton", 10, 90.0),
    "Memcpy HtoD (Pageable -> Device)": ("memcpy", 2, 6.0),
}

#: Compiled, and the GPU hardly waits in a call of `STEADY`: such times differ little from process to process.
BUSY = {**COMPILED, "gemm_128x64": ("gemm", 20, 1590.0)}

Kernels = Mapping[str, tuple[str, int, float]]


def make_analysis(
    kernels: Kernels = EAGER,
    *,
    steps: int = 2,
    idle_us: float = 800.0,
    causes: Mapping[str, float] | None = None,
    overlap_us: float = 0.0,
    outside_us: float = 0.0,
    graph_launches: int = 0,
    devices: int = 1,
    gpu_name: str = "NVIDIA H200",
    window: Any = "steps",
    health: Sequence[analyses.Health] = (),
) -> analyses.Analysis:
    """`kernels` maps a name to family, count and total microseconds in the window. `causes` are shares of idle time."""
    times = [analyses.KernelTime(name, family, n, us, us / n) for name, (family, n, us) in kernels.items()]
    times.sort(key=lambda each: -each.total_us)
    computing = tuple(each for each in times if each.family not in COPIES)
    copying = tuple(each for each in times if each.family in COPIES)
    families: dict[str, list[analyses.KernelTime]] = defaultdict(list)
    for each in computing:
        families[each.family].append(each)
    busy_us = sum(each.total_us for each in times) - overlap_us + outside_us
    span_us = busy_us + idle_us
    shares = {"op_dispatch": 0.75, "launch_call": 0.25} if causes is None else causes
    gap_us, first = {cause: share * idle_us / 4 for cause, share in shares.items()}, next(iter(kernels))
    gap = analyses.IdleGap(0, 12.5, idle_us / 4, gap_us, None, first)
    use = analyses.DeviceUse(0, gpu_name, span_us, busy_us, idle_us, idle_us / span_us, 1, outside_us)
    return analyses.Analysis(
        trace=analyses.TraceFacts(path="trace.json.gz", events=1234, bytes=5678, skipped={}),
        health=tuple(health),
        window=analyses.Window(kind=window, steps=steps if window == "steps" else 0, span_us=span_us),
        devices=(use,) * devices,
        gpu=analyses.GpuUse(span_us, busy_us, idle_us, idle_us / span_us, outside_us),
        kernels=analyses.KernelSummary(
            count=sum(each.count for each in computing),
            unique=len(computing),
            total_us=sum(each.total_us for each in computing),
            triton_count=sum(each.count for each in computing if is_triton(each.name)),
            short_count=0,
            by_family=tuple(
                analyses.FamilyTime(
                    family,
                    sum(each.count for each in some),
                    sum(each.total_us for each in some),
                    sum(each.count for each in some if is_triton(each.name)),
                    sum(each.total_us for each in some if is_triton(each.name)),
                )
                for family, some in families.items()
            ),
            by_name=computing,
        ),
        copies=analyses.CopySummary(
            memcpy_count=sum(each.count for each in copying if each.family == "memcpy"),
            memset_count=sum(each.count for each in copying if each.family == "memset"),
            total_us=sum(each.total_us for each in copying),
            by_name=copying,
        ),
        launches=analyses.LaunchSummary(sum(each.count for each in computing), graph_launches, 0, 0),
        idle=analyses.IdleSummary(
            gap_count=4,
            causes=tuple(analyses.CauseTime(cause, share * idle_us, 4) for cause, share in shares.items()),
            syncs=(analyses.SyncTime("cudaDeviceSynchronize", 2, idle_us / 8, None),),
            largest=(gap,),
        ),
        memory=None,
        steps=tuple(analyses.StepUse(i, span_us / steps, busy_us / steps, idle_us / steps, 0, 0) for i in range(steps)),
        cpu=None,
    )


def make_cpu_analysis(*, fused: int = 0) -> analyses.Analysis:
    return analyses.Analysis(
        trace=analyses.TraceFacts(path="trace.json.gz", events=100, bytes=2000, skipped={}),
        health=(),
        window=analyses.Window("steps", 2, 40_000.0),
        devices=(),
        **dict.fromkeys(("gpu", "kernels", "copies", "launches", "idle", "memory")),
        steps=(analyses.StepUse(0, 20_000.0, 0, 0, 0, 0), analyses.StepUse(1, 20_000.0, 0, 0, 0, 0)),
        cpu=analyses.CpuUse(
            40_000.0,
            200,
            37_000.0 if fused else 38_000.0,
            600.0 if fused else 0.0,
            fused,
            900.0 if fused else 0.0,
            (analyses.OperatorTime("aten::mm", 40, 30_000.0),),
        ),
    )


def make_form(
    name: FormName = "eager",
    wall_us: Sequence[float] = (1000.0,) * 10,
    *,
    during_timing: int = 0,
    diagnostics: Diagnostics | None = None,
) -> FormResult:
    compilation = CompileFacts(1, 0, 12.5, 0, during_timing, diagnostics) if name == "compiled" else None
    return FormResult(name, (), tuple(wall_us), None, 3 * 2**30, compilation, ())


def with_processes(form: FormResult, *walls: Sequence[float], during_timing: int = 0) -> FormResult:
    """The form with these calls in further processes, each of which compiled so much meanwhile."""
    repeats = (ProcessTimes(tuple(each), None, (), "asked number", 1.0, during_timing) for each in walls)
    return replace(form, timing=FormTiming("asked number", None, None, 1.0, (), tuple(repeats)))


def make_settings(**changes: Any) -> Settings:
    what = {"workload": "flux", "size": "full", "device": "cuda", "dtype": "bfloat16", "seed": 0, "iterations": 10}
    how = {"scope": "transformer", "mode": "default", "fullgraph": True, "dynamic": None}
    call = {"batch_size": 1, "height": 512, "width": 512, "steps": 2, "prompt": None, "pretrained": None}
    return Settings(**{**what, **how, **call, **changes})


def make_environment(**changes: Any) -> Environment:
    host = {"python": "3.11.9", "platform": "Linux", "cpu": "a CPU", "cpu_threads": 8, "git_commit": None}
    gpu = {"gpu": "NVIDIA H200", "gpu_memory_bytes": 140 * 2**30, "driver": "580.1", "cuda": "13.0"}
    return Environment(**{**host, **gpu, "packages": {"torch": "2.13.0", "triton": "3.7.0"}, **changes})


def make_side(
    label: str = "eager", analysis: analyses.Analysis | None = None, form: FormResult | None = None, **changes: Any
) -> Side:
    """A bare trace's side unless it has a form."""
    of_run = (make_settings(), make_environment()) if form else (None, None)
    return replace(Side(label, f"traces/{label}", analysis or make_analysis(), form, *of_run), **changes)


def make_pair(a_wall_us: Sequence[float], b_wall_us: Sequence[float]) -> tuple[Side, Side]:
    """Eager and compiled of one run, timed."""
    a = make_side("eager", make_analysis(EAGER), make_form("eager", a_wall_us))
    b = make_side("compiled", make_analysis(COMPILED, idle_us=300.0), make_form("compiled", b_wall_us))
    return a, b


def make_run(**changes: Any) -> Run:
    components = Component("transformer", 12_000_000_000, True), Component("vae", 84_000_000, False)
    file = {"schema": "tracekit.run/1", "status": "complete", "tracekit": "0.1.0"}
    asked = {"command": "tracekit profile flux --compiled", "started": "2026-01-02T03:04:05+00:00"}
    what = {"settings": make_settings(), "environment": make_environment(), "components": components}
    told = {"size_reason": "full, the largest that fits", "forms": (), "notes": ("The weights are random.",)}
    return Run(**{**file, **asked, **what, **told, "order": ORDER[:2], **changes})


#: Ten calls around 1 ms that differ by up to 0.4 %.
STEADY = (1000.0, 1002.0, 998.0, 1001.0, 999.0, 1003.0, 997.0, 1000.5, 999.5, 1001.5)


def scaled(factor: float) -> tuple[float, ...]:
    return tuple(us * factor for us in STEADY)


def command_of(finding: Finding | None) -> str:
    """The command that the finding says to type; fails where it says none."""
    assert finding is not None and isinstance(finding.advice, Command)
    return finding.advice.command
