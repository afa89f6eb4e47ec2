"""Notes on the two sides: what differs, how they were timed, what their recordings hold, how sure their matching is."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from tracekit.model.analysis import Health
from tracekit.model.option import OPTIONS
from tracekit.numbers import counted, duration, percent, size, times
from tracekit.report.words.findings.compiling import check_sentence
from tracekit.report.words.noted import noted_sentence
from tracekit.report.words.saying import Sentence
from tracekit.shell import variable_words
from tracekit.statements.accuracy import read_reason

#: What a setting, or a fact of the machine, is called.
WORDS = {each.name: each.word for each in OPTIONS} | {
    "gpu": "GPU",
    "gpus": "number of GPUs",
    "driver": "driver",
    "cuda": "CUDA version",
    "cpu": "CPU",
    "cpu_threads": "CPU threads",
    "python": "Python",
    "float32_matmul_precision": "float32_matmul_precision",
    "variables": "torch environment variables",
}
WINDOWS = {"steps": "its steps", "span": "one span", "whole": "the whole trace"}
#: What `--window` names that is no call.
LOOKED_AT = {"span": "the named window", "whole": "the whole trace"}


#: Where speed-ups hold though processes differ, and where they do not (docs/timing.md).
RATIOS_HOLD = "Speed-ups within one process vary less than absolute times."
RATIOS_MOVE = "It is host-bound: speed-ups vary between processes too."
#: Why provenance is of no use to a comparison.
NO_PROVENANCE = {
    "other_forms": "it maps eager to compiled",
    "two_runs": "the sides are of two runs",
    "steps_differ": "the steps of a side run different kernels and have no known boundaries",
}


def setting_differs(*, setting: str, a: Any, b: Any, a_name: str | None = None, b_name: str | None = None) -> str:
    """The names of the runs are there where more than two are compared."""
    names = f"{a_name} (A) and {b_name} (B): " if a_name is not None else ""
    return f"{names}The sides differ in {WORDS.get(setting, setting)}: A {_shown(a)}, B {_shown(b)}."


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return variable_words(value) or "none"
    if isinstance(value, list):
        return " ".join(map(str, value)) or "none"
    return "not recorded" if value is None else str(value)


def timed_slower_than_recorded(
    subject: str, *, wall_us: float, recorded_us: float, timed_calls: int, first_calls: bool
) -> str:
    why = "other load or another clock. Measure again."
    if first_calls:
        why = f"only {counted(timed_calls, 'timed call')}, and first calls are slow (--iterations)."
    return f"{subject}: unprofiled calls took {wall_us / recorded_us:.1f}x as long as profiled calls: {why}"


def _throttled(how: str, sides: Sequence[str]) -> str:
    """In a table that is of one side anyway, it is not named."""
    return f"{' and '.join(sides)}: GPU throttled, {how}." if sides else how


def clocks_differ(*, sides: Sequence[str], clocks_mhz: Sequence[float], lower: str, faster: str | None) -> str:
    """A lower clock makes calls longer as far as they wait for the GPU: it widens the difference of a form that is
    slower anyway, and hides some of what a faster one gains."""
    clocks = ", ".join(f"{clock:,.0f} MHz {name}" for name, clock in zip(sides, clocks_mhz, strict=True))
    effect = f"the clock may explain part of the difference, as far as {lower} is GPU-bound"
    if faster is None:
        effect = f"{lower} is slowed as far as it is GPU-bound"
    elif faster == lower:
        effect = f"this understates the gain of {faster}"
    return f"GPU clocks differ ({clocks}): {effect}."


def too_few_calls(*, calls: int, needed: int, repeats: int) -> str:
    beside = f", not counting {counted(repeats, 'repeat')}" if repeats else ""
    return f"Only {counted(calls, 'timed call')} a side{beside}: a verdict needs {needed} (--iterations)."


def few_stretches(*, rounds: int, stretches: float, needed: int) -> str:
    more = "more with --iterations" if rounds < needed else "a longer --time-budget, or --repeat-process 4"
    told = independent_words(rounds, stretches, needed)
    return (
        f"{told[0].upper()}{told[1:]}: below {needed}, a change counts if it exceeds what processes differ by ({more})."
    )


def independent_words(rounds: int, stretches: float, needed: int) -> str:
    """`only 5 rounds`; `40 rounds amount to 4 independent rounds`."""
    if rounds < needed:
        return f"only {counted(rounds, 'round')}"
    return f"{counted(rounds, 'round')} amount to {counted(math.floor(stretches), 'independent round')}"


def two_kinds(*, kinds: Sequence[Mapping[str, Any]]) -> str:
    return f"Processes are of two kinds: {kinds_words(kinds)}. No mean of them is any one's."


def kinds_words(kinds: Sequence[Mapping[str, Any]]) -> str:
    """`2 at 1.84x and 6 at 2.05x`."""
    return " and ".join(f"{each['processes']} at {times(each['speedup'])}" for each in kinds)


def _apart(fastest_us: float, slowest_us: float, waits_for_host: bool) -> str:
    share = percent(slowest_us / fastest_us - 1, 0)
    return f"{share} apart. {RATIOS_MOVE if waits_for_host else RATIOS_HOLD}"


def matched_by_elimination(*, shares: Mapping[str, float], no_provenance: str | None, advise_profile: bool) -> str:
    told = f"{_of_times(shares)} is matched by elimination only: kernel pairs there are uncertain."
    if no_provenance:
        return f"{told} Provenance does not apply: {NO_PROVENANCE[no_provenance]}."
    return f"{told} `tracekit profile` records provenance." if advise_profile else told


def _of_times(shares: Mapping[str, float]) -> str:
    return " and ".join(f"{percent(share, 0)} of {letter}'s GPU time" for letter, share in shares.items())


def waiting_untold(
    subject: str,
    *,
    communication_us: float,
    compute_us: float,
    exposed_us: float,
    rank: int | None,
    world_size: int | None,
) -> str:
    of = f" of {world_size:,}" if world_size else ""
    return (
        f"{subject} is {'one rank' if rank is None else f'rank {rank}'}{of}. GPU busy: compute {duration(compute_us)},"
        f" exposed communication {duration(exposed_us)} (communication kernels {duration(communication_us)} in all)."
        " How much of that is waiting for other ranks, one rank cannot tell: `tracekit ranks FOLDER` reads all of them."
    )


def alone(ranks: Sequence[int], of_ranks: int) -> str:
    """`Rank 1 alone`, `Ranks 1, 3 of 8`."""
    named = ", ".join(map(str, ranks))
    return f"Rank {named} alone" if len(ranks) == 1 else f"Ranks {named} of {of_ranks}"


def third(ratio: float, slower: bool) -> str:
    """The speed-up of a part of the rounds with the interval's digits; beside a slower B, how much slower it was."""
    if slower and ratio < 1:
        return f"{1 / ratio:.3f}\N{MULTIPLICATION SIGN} slower"
    return f"{ratio:.3f}\N{MULTIPLICATION SIGN}{' faster' if slower else ''}"


def drift_words(share: float) -> str:
    """How calls changed in time; a factor from twice as long on, where a percentage is hard to picture."""
    if share >= 1:
        return f"slowed down {times(1 + share)}"
    return f"became {percent(abs(share))} {'slower' if share > 0 else 'faster'}"


def _fewest(times: int) -> str:
    return f", the rank with fewest {counted(times, 'time')}" if times else ""


def _in_timed_calls(times: int) -> str:
    return f" {counted(times, 'recompile')} in timed calls." if times else ""


def damage_words(health: str, count: int, facts: Mapping[str, Any]) -> str:
    known: Any = Health.classes[health]
    return str(known(count, **facts).long())


#: What the outputs of one rank are.
OUTPUTS_OF_RANK = {"less_accurate": "differ by more than rounding", "undecided": "are inconclusive"}

SENTENCES: dict[str, Sentence] = {
    "throttled": lambda limit, share, sides=(): _throttled(
        f"{limit} limit active {percent(share, 0)} of the time", sides
    ),
    "throttled_in_samples": lambda reason, samples, of_samples, sides=(): _throttled(
        f"{reason} in {samples} of {of_samples} samples between calls", sides
    ),
    "gpu_shared": lambda sides, processes: (
        f"{' and '.join(sides)}: {processes} other {'process' if processes == 1 else 'processes'} had the GPU open"
        " during"
        " timing."
    ),
    "clocks_differ": clocks_differ,
    "same_recording": "Both sides are the same trace ({path}): every change is 0.",
    "cpu_run": (
        "This is a CPU run: operators, Inductor's C++ kernels and wall times. It has no GPU kernels, launches or idle"
        " time, and says nothing about a GPU."
    ),
    "no_gpu_activity": "{subject} has no GPU activity: kernels, idle time and waterfall cannot be compared.",
    "waiting_untold": waiting_untold,
    "communication_not_judged": (
        "Communication includes waiting for other ranks: its change (exposed {a_exposed_us:duration} ->"
        " {b_exposed_us:duration}) is neither gain nor loss of kernels. Kernels that run beside it take longer."
        " `tracekit ranks FOLDER` reads all ranks of a job and tells waiting from transfer."
    ),
    "several_gpus": "{subject} ran on {gpus} GPUs: figures are sums, without a waterfall.",
    "training_mode": lambda modules, side: (
        f"{f'{side}: ' if side else ''}{', '.join(modules)} {'was' if len(modules) == 1 else 'were'} in training mode:"
        " dropout is on, batch norm updates its averages. Call .eval() to measure inference."
    ),
    "not_read_over_steps": lambda window: (
        f"Times without the profiler, and their speed-up, are of whole calls, trace figures of {LOOKED_AT[window]}:"
        " they cannot be compared."
    ),
    "windows_differ": lambda a, b: (
        f"A covers {WINDOWS[a]}, B {WINDOWS[b]}: their figures cannot be compared. --window sets both."
    ),
    "whole_recordings": "Figures are of whole traces, not per step: both must hold the same work.",
    "named_spans": "Figures are per span: both spans must hold the same work.",
    "steps_differ": "A has {a} steps, B {b}; figures are per step.",
    "busier_than_the_call": lambda subject, busy_us, wall_us, idle_taken_for_0: (
        f"{subject}: the GPU was busy longer in the profiled step ({duration(busy_us)}) than an unprofiled call took"
        f" ({duration(wall_us)}): idle time"
        f" {'counts as 0' if idle_taken_for_0 else 'is not known; figures are profiled'}."
    ),
    "timed_slower_than_recorded": timed_slower_than_recorded,
    # `health` is the code of the finding that says so, `facts` are its facts.
    "damaged_recording": lambda subject, health, count, facts: f"{subject}: {damage_words(health, count, facts)}",
    "no_rich_recording": "{subject} has no full trace: idle time has no host causes on either side.",
    "setting_differs": setting_differs,
    "package_differs": lambda package, **facts: setting_differs(setting=package, **facts),
    "one_side_generates": "Only {side} generates text.",
    "one_side_is_own": "Only {side} is a user-defined model.",
    "not_timed": "Not both sides have unprofiled times: traces cannot show which is faster.",
    "not_alternated": "The sides were not interleaved: drift counts as a difference.",
    "too_few_calls": too_few_calls,
    "uneven_calls": "Only the first {rounds} calls of each side count: the rest have no counterpart.",
    "compiled_while_timed": "{subject}: {compilations:counted compilation} inside timed calls: no verdict.",
    "ran_eager": lambda reason: (
        f"Compiled ran eager: no recorded step entered compiled code{f' ({reason})' if reason else ''}."
    ),
    "part_ran_eager": "Part of {subject} ran eager: {place}: {reason}.",
    "drifted": lambda subject, share: (
        f"{subject} {drift_words(share)} during timing (last third of the calls over the first)."
    ),
    "two_speeds": lambda subject, fast_us, slow_us, slow_share, lasting: (
        f"{subject} is bimodal: {percent(1 - slow_share, 0)} of calls at {fast_us / 1e3:.3f} ms,"
        f" {percent(slow_share, 0)} at {slow_us / 1e3:.3f} ms{'' if lasting else ', switching from call to call'}."
        " Likely causes: clocks, other load."
    ),
    "speedup_by_thirds": lambda first, last, beyond_ci, slower: (
        f"Interleaving cancels common drift: {'B was' if slower else 'the speed-up was'}"
        f" {third(first, slower)} in the first third, {third(last, slower)} in the last."
        f"{' The CI does not cover that.' if beyond_ci else ''}"
    ),
    "few_stretches": few_stretches,
    "two_kinds": two_kinds,
    "outliers": lambda rounds, of_rounds, speedup: (
        f"{rounds:,} of {counted(of_rounds, 'round')} are outliers and no part of the speed-up; with them it is"
        f" {times(speedup)}. Some calls may do other work."
    ),
    "coarse_clock": lambda share: (
        f"The clock shows steps of up to {percent(share, 0)} of a call: smaller changes are not seen. Time larger calls"
        " (--batch-size)."
    ),
    "warming": lambda subject, calls, of_calls: (
        f"{subject}: {calls:,} of {of_calls:,} timed calls, at the beginning, do not count: speeds had not settled."
    ),
    "process_spread": lambda subject, fastest_us, slowest_us, waits_for_host: (
        f"{subject} took {duration(fastest_us)} to {duration(slowest_us)} per call between processes,"
        f" {_apart(fastest_us, slowest_us, waits_for_host)}"
    ),
    "advice_process_spread": lambda subject, own_us, advised_us, waits_for_host: (
        f"{subject} took {duration(own_us)} per call in the run's own process, {duration(advised_us)} in the advice's,"
        f" {_apart(min(own_us, advised_us), max(own_us, advised_us), waits_for_host)}"
    ),
    "of_ranks": (
        "A call of {subject} ends with the slowest of {ranks} ranks: rank {rank} in {times:,} of {calls:,} calls. The"
        " recordings shown are rank {shown}'s."
    ),
    "first_rank_alone": "Of runs over several ranks rank 0 alone is shown: `tracekit compare RUN` tells of all.",
    "ranks_differ": "A is of {a:counted rank}, B of {b}: only rank 0 of each is compared.",
    "rank_recompiled": lambda subject, ranks, of_ranks, function, where, **facts: (
        f"{alone(ranks, of_ranks)} recompiled {function or 'a frame'}{f' ({where})' if where else ''}"
        f" {counted(facts['times'], 'time')} in {subject}{_fewest(facts['least'])}:"
        f" {check_sentence(facts['failed_check'])}.{_in_timed_calls(facts['timed'])} Other ranks wait meanwhile."
    ),
    "rank_broke": lambda subject, ranks, of_ranks, where, function, reason: (
        f"{alone(ranks, of_ranks)} has a graph break at {where or function or 'an unknown line'} in {subject}:"
        f" {reason.rstrip('.')}."
    ),
    "rank_ran_eager": lambda subject, ranks, of_ranks, where, function, reason: (
        f"{alone(ranks, of_ranks)} ran {function or 'a frame'}{f' ({where})' if where else ''} eager in {subject}:"
        f" {reason.rstrip('.')}."
    ),
    "rank_memory": lambda subject, ranks, of_ranks, peak_bytes, least_bytes: (
        f"{alone(ranks, of_ranks)}: peak memory of {subject} {size(peak_bytes)}, of the rank with least"
        f" {size(least_bytes)}."
    ),
    "rank_outputs": lambda subject, ranks, of_ranks, result, basis, reason, **facts: (
        f"{alone(ranks, of_ranks)}: outputs of {subject} {OUTPUTS_OF_RANK[result]}, those of other ranks are better."
        f" {read_reason(reason, facts).long()}"
    ),
    "eager_differs_between_runs": (
        "Eager took {ratio:.2f}x as long in {slowest}'s process as in {fastest}'s: compare speed-ups, not times."
    ),
    "interrupted": "{runs:A run was|Both runs were} interrupted: calls or recordings are missing.",
    "no_operators": (
        "{subject} has no operators for most kernels (CUDA graphs, or only CUDA activity recorded): they are matched by"
        " name, which can mix up sizes. --ops TRACE takes operators from a trace without CUDA graphs."
    ),
    "no_shapes": (
        "{subject} has no shapes (record_shapes): kernels are matched by name and order, which can mix up sizes."
    ),
    "little_matched": lambda matched_shares: (
        f"Only {_of_times(matched_shares)} was matched: check that both sides run the same model at the same sizes."
    ),
    "matched_by_elimination": matched_by_elimination,
    "provenance_unused": lambda why: (
        f"Kernels are matched by operators, shapes and order, without provenance: {NO_PROVENANCE[why]}."
    ),
    # What was noted while the run was asked, as its folder holds it.
    "provenance_noted": noted_sentence,
    "provenance_without_work": "the provenance runs hold no GPU work",
    "not_in_provenance": "{activities} of {of_activities} {subject} activities are not in the provenance run",
    "only_in_provenance": "{activities} {subject} activities of the provenance run are not in the trace",
    "ambiguous_launch_sites": (
        "{groups:counted group} of compiled activities {groups:fits|fit} several launch sites and"
        " {groups:includes|include}"
        " all of them"
    ),
    "operators_linked_by_elimination": "{operators}/{of_operators} eager operators matched approximately",
    "operators_of_other_sizes": (
        "{operators} {operators:operator has|operators have} another output size than the linked work"
    ),
    "operators_without_counterpart": (
        "{operators} eager {operators:operator|operators} in compiled modules {operators:has|have} no counterpart in a"
        " graph"
    ),
    "unexplained_launch_sites": "{sites} {sites:launch site has|launch sites have} no known eager operator",
}
