"""How each number came about, in words for a reader who does not know tracekit."""

from collections.abc import Iterable, Iterator

from tracekit.model.comparison import Comparison, Finding
from tracekit.model.run import Run
from tracekit.report.sections.figures import basis_of
from tracekit.report.words.common import Sides

WALL = "From the call's start on the host until the device is done, profiler off."
ALTERNATION = "Eager and compiled are interleaved in one process, in a new random order each round, after warm-up."
SPEED_UP = (
    "Geometric mean over rounds of A's time over B's, without outliers, with a 95 % CI by batch means, the widest of "
    "several cuts. A change counts if the CI excludes 1 and it exceeds the noise floor and 2 % (1 % from three "
    "processes on). Of fewer than 10 independent rounds only a change beyond the spread of processes counts. The noise "
    "floor is an A/A test: {controls}. {processes}"
)
BY_CONTROLS, BY_HALVES = "a second call of the same variant in some rounds", "odd against even calls"
ONE_PROCESS = "The CI is of this process."
SEVERAL_PROCESSES = "Over several processes: their mean, with Student's t CI; of fewer than eight their range."
NEXT_PROCESS = (
    " The next process on this host lies, in 95 of 100, where speed-ups of earlier works did (docs/timing.md)."
)
SPEED_UP_APART = (
    "Ratio of the two medians, with a 95 % CI by block bootstrap of each (2,000 resamples); Welch's t over several "
    "processes. It holds if the machine was the same for both."
)
IDLE_UNPROFILED = (
    "Unprofiled wall time minus GPU busy time. Its causes are what the launching thread did meanwhile, from the trace. "
    "Profiler overhead is removed. Idle time that they do not explain is in the residual (docs/idle.md)."
)
IDLE_RECORDED = (
    "From the trace; its causes are what the launching thread did meanwhile. The profiler lengthens idle time."
)
GROUPS = (
    "Kernels of the same name and count on both sides are one group each. The others are grouped by family, which does "
    "not prove that they do the same work."
)
GROUPS_BY_PROVENANCE = (
    "Inductor provenance names the operators of each compiled launch; an extra eager call names the operator of each "
    "eager kernel. Both are matched by module, line and operator, then by order. The rest is matched by operators, "
    "shapes and order."
)
GROUPS_BY_WORK = (
    "Matmuls, attention and convolutions of the same shapes align both kernel sequences. Kernels between them are "
    "matched where the Triton kernel's name lists the operator, and sizes and order fit. The rest is gone, new or "
    "unmatched."
)
#: What is said in one way only.
HOW = {
    "Operators": (
        "From a separate torch.profiler trace. Self time excludes called operators. `tracekit profile` compiles"
        " Inductor's C++ kernels with profiler events (cpp.enable_kernel_profile), which slow compiled calls slightly."
    ),
    "GPU busy time": "The union of kernels, copies and memsets over all streams, from separate torch.profiler traces.",
    "Bottleneck": (
        "A call is divided into GPU idle, copies and kernels. A kernel is memory-bound if its bytes take longer than "
        "its arithmetic at the device's published peaks (roofline estimate from input sizes). Below 20 us and 30 % of "
        "both it is latency-bound: too small to fill the GPU. The largest part is the bottleneck if it is 40 % of the "
        "call and 1.25x the next; otherwise the call is mixed. A bare trace is also judged at the largest profiler "
        "overhead measured (2x, 4.25x with Python stacks)."
    ),
    "Memory traffic": (
        "Estimated: each operator call reads its inputs once and writes its results once, whatever caches serve. A "
        "Triton kernel's arguments are its inputs and results. Groups of unknown sizes have no figure and are not in "
        "the sum, which is given where the others hold half of both sides' GPU time."
    ),
    "Kernels and launches": (
        "Kernels are GPU functions; copies and memsets are counted separately. A launch is a host call that starts "
        "kernels; one CUDA-graph launch starts many."
    ),
    "Outputs": (
        "After timing, eager and compiled are called twice with the same seeds, and the model once in higher precision."
        " Compiled is as accurate as eager if its error is at most 2x eager's (3x in half precision and small tensors)"
        " plus half a rounding step of the dtype."
    ),
    "GPU memory": "From torch's allocator. Steady: one extra call, after emptying the allocator's cache.",
    "State of the GPU": "Read from the driver before, after and between timed calls. No setting is changed.",
    "Savings": "Savings are upper estimates and may overlap: do not add them up.",
    "Step": "One call, or the whole trace where no steps are marked. All figures are per step.",
}
#: Of one side, of two, and of several: whose step it is, and what lights up.
TIMELINE = (
    "The step of median length{whose}: {work}, {between} by main cause, the host thread by innermost event. Hovering "
    "{one} highlights {lit}."
)
TIMELINES = {
    1: ("", "all {what}s of its name"),
    2: (" of each side, each from its own start", "its {what} group; its counterpart is paired by order"),
    3: (" of each variant, each from its own start", "all {what}s of its name"),
}
#: What is drawn of a GPU, and of a CPU: what bars are, one of them, all, and what is between them.
DRAWN = {
    True: ("kernel", "a kernel", "GPU activity by stream", "idle gaps"),
    False: ("operator", "an operator", "outermost operators by thread", "the time between"),
}


def how_measured(
    sides: Sides, findings: Iterable[Finding], run: Run | None, comparison: Comparison | None, *, drawn: bool
) -> Iterator[tuple[str, str]]:
    """Each kind of figure that a report on these sides shows, and how it came about; timelines if they are `drawn`."""
    every, forms = [side for _, side in sides], [side.form for _, side in sides if side.form]
    if any(side.wall_us is not None for side in every):
        yield "Wall time", f"{WALL} {ALTERNATION}" if run and len(set(run.order)) > 1 else WALL
    if comparison and comparison.verdict.ci95:
        yield "Speed-up", _speed_up(comparison)
    on_gpu = any(side.analysis.gpu is not None for side in every)
    if on_gpu:
        yield "GPU busy time", HOW["GPU busy time"]
        yield "Idle time", IDLE_UNPROFILED if basis_of(every) == "unprofiled" else IDLE_RECORDED
    terms = {
        "Operators": not on_gpu,
        "Bottleneck": on_gpu,
        "Memory traffic": on_gpu and comparison and comparison.traffic,
        "Kernels and launches": on_gpu,
    }
    yield from ((term, HOW[term]) for term, is_shown in terms.items() if is_shown)
    if on_gpu and comparison:
        ways = {group.how for group in comparison.groups}
        told = GROUPS if "names" in ways or not ways else GROUPS_BY_WORK
        yield "Kernel groups", GROUPS_BY_PROVENANCE if "provenance" in ways else told
    terms = {
        "Outputs": comparison and any(form.numerics for form in forms),
        "GPU memory": any(form.memory for form in forms),
        "State of the GPU": any(form.gpu_state for form in forms),
        "Savings": any(finding.saving_us is not None for finding in findings),
        "Step": True,
    }
    yield from ((term, HOW[term]) for term, is_shown in terms.items() if is_shown)
    if drawn:
        whose, lit = TIMELINES[min(len(sides), 3)]
        what, one, work, between = DRAWN[on_gpu]
        told = TIMELINE.format(whose=whose, work=work, between=between, one=one, lit=lit.format(what=what))
        yield "Timeline", told


def _speed_up(comparison: Comparison) -> str:
    verdict, forms = comparison.verdict, (comparison.a.form, comparison.b.form)
    if verdict.basis == "apart":
        return SPEED_UP_APART
    controlled = any(form.timing.controls for form in forms if form and form.timing)
    holds = SEVERAL_PROCESSES if verdict.basis == "processes" else ONE_PROCESS
    said = SPEED_UP.format(controls=BY_CONTROLS if controlled else BY_HALVES, processes=holds)
    return said + (NEXT_PROCESS if verdict.next_process95 else "")
