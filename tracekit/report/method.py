"""How each number came about, in words for a reader who does not know tracekit."""

from __future__ import annotations

from collections.abc import Iterator

from tracekit.model.comparison import Comparison
from tracekit.model.run import Run

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
    "The ratio of the two medians, with its 95 % bootstrap interval (2,000 resamples), each side by itself. It holds "
    "if the machine was the same for both."
)

BUSY = (
    "From separate recordings with torch.profiler: the time in which at least one kernel, copy or memory set ran, over "
    "all streams. Recording hardly changes it, while it lengthens what happens on the host."
)

IDLE_UNPROFILED = (
    "Unprofiled wall time less GPU busy time. Its causes are those of the idle time in the recording, which is longer: "
    "what the host thread that launched the next kernel was doing meanwhile. How much recording added is said beside "
    "them; what it added to one side more than to the other the waterfall takes back in a part of its own."
)

IDLE_RECORDED = (
    "As recorded. Its causes are what the host thread that launched the next kernel was doing meanwhile. Recording "
    "lengthens idle time, so the true one is shorter."
)

BOUND = (
    "The call is divided into idle time behind synchronising calls, idle time before launches, copies, and kernels by "
    "the limit they meet first, memory or arithmetic, by estimate from the sizes of their inputs and the device's "
    "published peak. The largest part decides if it is 40 % of the call and 1.25 times the next; else the form is "
    "mixed. Idle time is the unprofiled call's, divided as recorded. A trace without unprofiled times decides only "
    "what holds too if recording slowed the call as much as it was ever seen to."
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

STEP = "One measured call of the model, or the whole recording where no steps are marked. All figures are per step."


def how_measured(comparison: Comparison, run: Run | None) -> tuple[tuple[str, str], ...]:
    """Each kind of figure that the report shows, and how it came about."""
    return tuple(_explained(comparison, run))


def _explained(comparison: Comparison, run: Run | None) -> Iterator[tuple[str, str]]:
    if comparison.verdict.result != "not_timed":
        yield "Wall time", f"{WALL} {ALTERNATION}" if run and run.order else WALL
    if comparison.verdict.ci95:
        yield "Speed-up", _speed_up(comparison)
    if comparison.a.analysis.gpu is None and comparison.b.analysis.gpu is None:
        yield "Operators", OPERATORS
    else:
        yield "GPU busy time", BUSY
        unprofiled = comparison.waterfall is not None and comparison.waterfall.basis == "unprofiled"
        yield "Idle time", IDLE_UNPROFILED if unprofiled else IDLE_RECORDED
        if comparison.a_bound or comparison.b_bound:
            yield "What a form is bound by", BOUND
        yield "Kernels and launches", KERNELS
        yield "Kernel groups", _groups({group.how for group in comparison.groups})
    yield "Step", STEP


def _speed_up(comparison: Comparison) -> str:
    if comparison.verdict.basis == "apart":
        return SPEED_UP_APART
    forms = (comparison.a.form, comparison.b.form)
    controlled = any(form.timing.controls for form in forms if form and form.timing)
    several = comparison.verdict.basis == "processes"
    return (
        SPEED_UP
        + (NOISE_BY_CONTROLS if controlled else NOISE_BY_HALVES)
        + (SEVERAL_PROCESSES if several else ONE_PROCESS)
    )


def _groups(ways: set[str]) -> str:
    if "provenance" in ways:
        return GROUPS_BY_PROVENANCE
    return GROUPS if "names" in ways or not ways else GROUPS_BY_WORK
