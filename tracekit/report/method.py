"""How each number came about, in words for a reader who does not know tracekit."""

from collections.abc import Iterator

from tracekit.model.comparison import Comparison, Finding, Side
from tracekit.model.run import Run
from tracekit.model.single_run import SingleRun

WALL = "Each call from its start on the host until the device had finished, without the profiler."

ALTERNATION = (
    "The two forms ran in alternation in one process, in an order drawn anew for every round, after warm-up calls with "
    "the same inputs."
)

SPEED_UP = (
    "In each round A's call over B's; the speed-up is the median over the rounds. Its 95 % interval resamples the "
    "rounds 2,000 times, neighbouring ones together where they are alike. A change counts if the interval leaves 1 out "
    "and it exceeds the noise floor, 2 % (of three processes or more 1 %), and what one form alone changed its speed "
    "by (docs/timing.md)."
)

NOISE_BY_CONTROLS = " The noise floor compares two calls of one form in one round in the same way."

NOISE_BY_HALVES = " The noise floor compares odd with even calls of the same form."

ONE_PROCESS = " The interval holds for this process; another start of the program can differ by more."

SEVERAL_PROCESSES = (
    " The speed-up here is the mean over the processes, its interval Student's t over them, so that it holds what "
    "differs from one start of the program to the next."
)

SPEED_UP_APART = (
    "The ratio of the two medians, with its 95 % interval: both sides' own, by block bootstrap (2,000 resamples), "
    "taken together; of runs in several processes Welch's t over their medians. It holds if the machine was the same "
    "for both."
)

BUSY = (
    "From separate recordings with torch.profiler: the time in which at least one kernel, copy or memory set ran, over "
    "all streams. Recording hardly changes it, while it lengthens what happens on the host."
)

IDLE_UNPROFILED = (
    "Unprofiled wall time less GPU busy time. Its causes are those of the idle time in the recording, which is longer: "
    "what the host thread that launched the next kernel was doing meanwhile. What recording added is taken from them: "
    "the profiler's own events first, then all of the host's causes by one factor, the GPU's own last. Idle time that "
    "no recording shows has no cause and is in the residual."
)

IDLE_RECORDED = (
    "As recorded. Its causes are what the host thread that launched the next kernel was doing meanwhile. Recording "
    "lengthens idle time, so the true one is shorter."
)

BOUND = (
    "The call is divided into the time in which the GPU waited (for a host that itself had waited for the GPU, or that "
    "had not launched the next work yet), copied memory, or ran kernels. A kernel is limited by memory if moving its "
    "inputs and results takes longer than its arithmetic, both at the speed that the device's maker publishes; this is "
    "estimated from the sizes of its inputs. The largest part names the limit if it is 40 % of the call and 1.25 times "
    "the next part; else the form is mixed. Products whose sizes are not known are a part of their own, which may be "
    "the largest: then the limit cannot be told. How long the GPU waited comes from calls without the profiler. A "
    "trace alone has none; what is said of it holds as recorded, and also if recording made the call as long as was "
    "ever measured (2 times, 4.25 times with Python stacks)."
)

TRAFFIC = (
    "Bytes that operators read and write, if each reads its inputs once and writes its results once: what a cache "
    "serves or a kernel reads twice is not seen. Each operator call counts once, however many kernels it launched. "
    "Eager calls of a run of tracekit's are counted from their tensors, others from the recorded sizes of their "
    "inputs. A Triton kernel's arguments are its inputs and results. A group whose calls are not all known has no "
    "figure, and is left out of the sum."
)

KERNELS = (
    "Kernels are GPU functions; memory copies and sets are counted apart. A launch is a host call that started at "
    "least one kernel; one CUDA-graph launch starts many."
)

GROUPS = (
    "Kernels of the same name and number on both sides are one group each. The others are gathered by family, which "
    "does not prove that they do the same work."
)

GROUPS_BY_PROVENANCE = (
    "Inductor was asked, while it compiled, which operators each of its launches stands for; one eager call more, not "
    "timed, told which operator launched each kernel. Operators of both are the same where module, line and operator "
    "agree, several in one place by their order. What Inductor lists for several kernels is counted for the one with "
    "the shortest list; kernels that cannot be told apart are one group. What this leaves is matched by operators, "
    "shapes and order."
)

GROUPS_BY_WORK = (
    "Matrix products, attention and convolutions of the same shapes are the same work on both sides and tie the two "
    "sequences of kernels together; a few calls may have changed places. What stands between them belongs together "
    "where the name of a Triton kernel lists the operator, its inputs have the operator's sizes, and the order fits. "
    "What no kernel near it names is gone, or new; what could not be told is unmatched."
)

OPERATORS = (
    "From a separate recording with torch.profiler. Own time leaves out the operators called within. Inductor's C++ "
    "kernels are compiled with their profiler events (cpp.enable_kernel_profile), in the timed calls too, which makes "
    "the compiled form a little slower than without."
)

OUTPUTS = (
    "After everything was timed and recorded, each form was called twice with the same seeds, and the model once in a "
    "higher precision: weights, inputs and whatever it computes cast up, the same noise. Compiled code counts as "
    "accurate when it is at most 2 times as far from that reference as eager code, 3 times in half precisions and "
    "small tensors, beside half a step of the dtype. Rounding is amplified by every step of a call that has many."
)

MEMORY = (
    "Of torch's allocator. Steady calls: one call more, not timed, after what the allocator kept unused had been "
    "given back, so that the other form's leavings do not count."
)

GPU_STATE = "Asked of the driver before and after timing and between timed calls. Nothing is ever set."

FINDINGS = (
    "What a finding could save is an estimate from above, each by itself: two findings may count the same time, so "
    "savings do not add up."
)

STEP = "One measured call of the model, or the whole recording where no steps are marked. All figures are per step."

#: How a sweep's figures came about; docs/sweep.md says more.
SWEEP = {
    "A process a cell": (
        "Each cell is built, warmed up until nothing compiles any more, and timed without the profiler in a fresh "
        "process with an empty Inductor cache of its own, the cells in an order drawn by the seed. Where graphs came "
        "from a cache all the same (a remote one), the cell says so."
    ),
    "Eager beside compiled": (
        "A compiled cell's process times the eager form too, call by call in alternation. Speed-up, interval and "
        "verdict are of that process alone, as in any run (docs/timing.md), and so are both medians beside them; "
        "eager times of other processes are no part of them."
    ),
    "Eager over processes": (
        "All processes that timed the same eager work, each counting alike, with how far they differ. That is what a"
        " single process's times may be off by."
    ),
    "Best": (
        "Eager is beaten by what its own process's verdict calls faster, and by nothing else. Cells that beat it are "
        "compared by their time relative to eager calls of their own process: one is best alone where its interval "
        "and the other's do not meet, and they differ by more than the noise of either and than eager does between "
        "processes."
    ),
    "Cold start": (
        "The calls until a form is quiet, as they were, then steady ones. Loading and building the model are left "
        "out: they are the same for every form. Eager is warmed up first in every process and alone pays what a "
        "process does once (the device's context, handles of libraries, code loaded at its first use). What of its "
        "start-up that is, nobody measured: so a compiled form's cold start and its break-even lie between two "
        "numbers, with nothing of eager's start-up and with all of it, and only what holds for both is said."
    ),
}


def _drawn(whose: str, own: str, lit: str) -> str:
    return (
        f"The recorded step of median length{whose}{own}: GPU activities by stream, idle gaps by the cause of their "
        f"larger part, the host thread by the innermost event. A kernel lights up {lit}."
    )


#: Of the page alone, which draws them: of two sides, of one, and of several.
OWN_START = ", each from its own start"
TIMELINES = _drawn(
    " of each side",
    OWN_START,
    "its kernel group, all the places in which the same work is done; its counterpart is paired by order in the group",
)
TIMELINE = _drawn("", "", "all kernels of its name")
TIMELINES_BY_NAME = _drawn(" of each form", OWN_START, "all kernels of its name, in every form")


def how_one_was_measured(single: SingleRun, run: Run | None) -> Iterator[tuple[str, str]]:
    """Each kind of figure that a report on one side shows, and how it came about."""
    side = single.side
    if side.wall_us is not None:
        yield "Wall time", f"{WALL} {ALTERNATION}" if run and len(set(run.order)) > 1 else WALL
    if side.analysis.gpu is None:
        yield "Operators", OPERATORS
    else:
        yield "GPU busy time", BUSY
        yield "Idle time", IDLE_UNPROFILED if side.unprofiled_idle_us is not None else IDLE_RECORDED
        if single.bound:
            yield "What it is bound by", BOUND
        yield "Kernels and launches", KERNELS
    if side.timeline:
        yield "Timeline", TIMELINE
    yield from _besides((side,), single.findings)


def how_measured(comparison: Comparison, run: Run | None) -> Iterator[tuple[str, str]]:
    """The same of a report on two sides."""
    sides, ways = (comparison.a, comparison.b), {group.how for group in comparison.groups}
    if comparison.verdict.result != "not_timed":
        yield "Wall time", f"{WALL} {ALTERNATION}" if run and run.order else WALL
    if comparison.verdict.ci95 and comparison.verdict.basis == "apart":
        yield "Speed-up", SPEED_UP_APART
    elif comparison.verdict.ci95:
        controlled = any(side.form.timing.controls for side in sides if side.form and side.form.timing)
        holds = SEVERAL_PROCESSES if comparison.verdict.basis == "processes" else ONE_PROCESS
        yield "Speed-up", SPEED_UP + (NOISE_BY_CONTROLS if controlled else NOISE_BY_HALVES) + holds
    if all(side.analysis.gpu is None for side in sides):
        yield "Operators", OPERATORS
    else:
        yield "GPU busy time", BUSY
        unprofiled = comparison.waterfall is not None and comparison.waterfall.basis == "unprofiled"
        yield "Idle time", IDLE_UNPROFILED if unprofiled else IDLE_RECORDED
        if comparison.a_bound or comparison.b_bound:
            yield "What a form is bound by", BOUND
        if comparison.traffic:
            yield "Memory traffic", TRAFFIC
        yield "Kernels and launches", KERNELS
        told = GROUPS if "names" in ways or not ways else GROUPS_BY_WORK
        yield "Kernel groups", GROUPS_BY_PROVENANCE if "provenance" in ways else told
    if any(side.form.numerics for side in sides if side.form):
        yield "Outputs", OUTPUTS
    yield from _besides(sides, comparison.findings)


def _besides(sides: tuple[Side, ...], findings: tuple[Finding, ...]) -> Iterator[tuple[str, str]]:
    forms = [side.form for side in sides if side.form]
    if any(form.memory for form in forms):
        yield "GPU memory", MEMORY
    if any(form.gpu_state for form in forms):
        yield "State of the GPU", GPU_STATE
    if any(finding.saving_us is not None for finding in findings):
        yield "Savings", FINDINGS
    yield "Step", STEP
