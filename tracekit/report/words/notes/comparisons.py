"""Notes on the two sides: what differs, how they were timed, what their recordings hold, how sure their matching is."""

from collections.abc import Mapping, Sequence
from typing import Any

from tracekit.model.analysis import HealthFinding
from tracekit.model.option import OPTIONS
from tracekit.numbers import counted, duration, percent
from tracekit.report.words.health import health_sentence
from tracekit.report.words.saying import Sentence
from tracekit.shell import variable_words

#: What a setting, or a fact of the machine, is called.
WORDS = {each.name: each.word for each in OPTIONS} | {
    "gpu": "GPU",
    "gpus": "number of GPUs",
    "driver": "driver",
    "cuda": "CUDA version",
    "cpu": "CPU",
    "cpu_threads": "CPU threads",
    "python": "Python",
    "float32_matmul_precision": "precision of float32 products",
    "variables": "variables of the environment that steer torch",
}
WINDOWS = {"steps": "its marked steps", "span": "one span", "whole": "the whole recording"}


#: Where speed-ups hold though processes differ, and where they do not (docs/timing.md).
RATIOS_HOLD = "Ratios of calls in one process hold better than that; absolute times, and what each call saves, do not."
RATIOS_MOVE = "It waits for the host: speed-ups of such forms move from process to process too."
#: Why provenance is of no use to a comparison.
NO_PROVENANCE = {
    "other_forms": "it leads from an eager form to a compiled one",
    "two_runs": "the sides are of two runs",
    "steps_differ": "the steps of a side do not all run the same kernels, and where each begins is not known",
}


def setting_differs(*, setting: str, a: Any, b: Any, a_name: str | None = None, b_name: str | None = None) -> str:
    """The names of the runs are there where more than two are compared."""
    names = f"{a_name} (A) and {b_name} (B): " if a_name is not None else ""
    return f"{names}The sides differ in {WORDS.get(setting, setting)}: A has {_shown(a)}, B has {_shown(b)}."


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return variable_words(value) or "none"
    if isinstance(value, list):
        return " ".join(map(str, value)) or "none"
    return "none recorded" if value is None else str(value)


def timed_slower_than_recorded(
    subject: str, *, wall_us: float, recorded_us: float, timed_calls: int, first_calls: bool
) -> str:
    why = "something else used this machine meanwhile, or its clocks changed. Measure again."
    if first_calls:
        timed = "call was" if timed_calls == 1 else "calls were"
        why = f"only {timed_calls} {timed} timed, and first calls are slow. Time more (--iterations)."
    return (
        f"{subject}: timed calls took {wall_us / recorded_us:.1f} times as long as recorded ones, though "
        f"recording slows calls: {why}"
    )


def _held_back(how: str, sides: Sequence[str]) -> str:
    """In a table that is of one side anyway, it is not named."""
    if not sides:
        return how
    return f"{' and '.join(sides)}: the GPU was held back while it was timed: {how}. Times are of a throttled GPU."


def clocks_differ(*, sides: Sequence[str], clocks_mhz: Sequence[float], lower: str, faster: str | None) -> str:
    """A lower clock makes calls longer as far as they wait for the GPU: it widens the difference of a form that is
    slower anyway, and hides some of what a faster one gains."""
    one, other = (f"{clock:,.0f} MHz between {name}'s" for name, clock in zip(sides, clocks_mhz, strict=True))
    effect = f"a part of the difference may be the clock's, as far as {lower} waits for the GPU"
    if faster is None:
        effect = f"as far as calls wait for the GPU, {lower} is slower for its clock"
    elif faster == lower:
        effect = f"{faster} is faster at the lower clock, which hides a part of the difference"
    return f"The GPU's clock was {one} calls and {other}: {effect}."


def too_few_calls(*, calls: int, needed: int, repeats: int) -> str:
    told = f"Only {counted(calls, 'timed call')} a side: a verdict needs {needed} at least (--iterations)."
    if not repeats:
        return told
    return f"{told} That is of one process: the calls of {counted(repeats, 'repeat')} do not make up for it."


def ratio_changed(*, share: float, repeat: int | None) -> str:
    """`repeat` is 0 for the run's own process, and None where that is the only one."""
    of = "" if repeat is None else f" of repeat {repeat}" if repeat else " of the run's own process"
    return (
        f"Within the timing{of} one form changed its speed against the other's by {percent(share)}: no smaller"
        " difference is called a change."
    )


def _apart(fastest_us: float, slowest_us: float, waits_for_host: bool) -> str:
    share = percent(slowest_us / fastest_us - 1, 0)
    return f"{share} apart. {RATIOS_MOVE if waits_for_host else RATIOS_HOLD}"


def matched_by_elimination(*, shares: Mapping[str, float], no_provenance: str | None, advise_profile: bool) -> str:
    told = (
        f"{_of_times(shares)} could only be matched by elimination, not kernel by kernel: which kernel became which is"
        " doubtful there."
    )
    if no_provenance:
        return f"{told} Provenance cannot tell it: {NO_PROVENANCE[no_provenance]}."
    return f"{told} A run of `tracekit profile` asks torch instead." if advise_profile else told


def _of_times(shares: Mapping[str, float]) -> str:
    return " and ".join(f"{percent(share, 0)} of {letter}'s GPU time" for letter, share in shares.items())


SENTENCES: dict[str, Sentence] = {
    "throttled": lambda limit, share, sides=(): _held_back(
        f"by its {limit} limit for {percent(share, 0)} of the time", sides
    ),
    "throttled_in_samples": lambda reason, samples, of_samples, sides=(): _held_back(
        f"{reason}, in {samples} of {of_samples} samples between calls", sides
    ),
    "gpu_shared": lambda sides, processes: (
        f"{' and '.join(sides)}: {f'{processes} other processes' if processes > 1 else 'another process'} had the GPU"
        " open while it was timed; whether they computed is not known."
    ),
    "clocks_differ": clocks_differ,
    "same_recording": "Both sides are the same recording ({path}): every change is 0.",
    "cpu_run": (
        "This is a CPU run. It shows operators, Inductor's C++ kernels and wall times; it cannot show GPU kernels, "
        "launches, idle time or their causes, and says nothing about how a GPU would fare."
    ),
    "no_gpu_activity": "{subject} has no GPU activity: kernels, idle time and waterfall cannot be compared.",
    "several_gpus": "{subject} ran on {gpus} GPUs: figures are sums, and no waterfall is drawn.",
    "not_read_over_steps": (
        "The recordings were not read over their steps, so their figures do not stand beside unprofiled times."
    ),
    "windows_differ": lambda a, b: (
        f"A was read over {WINDOWS[a]} and B over {WINDOWS[b]}: figures per step do not mean the same on both sides; "
        "pass --window to read both alike."
    ),
    "whole_recordings": "Figures are of the whole recordings, not per step: both must hold the same work.",
    "named_spans": "Figures are per span: both spans must hold the same work.",
    "steps_differ": "A was recorded over {a} steps, B over {b}; figures are per step.",
    "busier_than_the_call": lambda subject, busy_us, wall_us, idle_taken_for_0: (
        f"{subject}: the GPU was busy for {duration(busy_us)} of the recorded step, longer than the unprofiled call"
        f" ({duration(wall_us)}): its idle time"
        f" {'is taken for 0' if idle_taken_for_0 else 'is not known, figures are as recorded'}."
    ),
    "timed_slower_than_recorded": timed_slower_than_recorded,
    # `health` is the code of the finding that says so, `facts` are its facts.
    "damaged_recording": lambda subject, health, count, facts: (
        f"{subject}: {health_sentence(HealthFinding(health, 'error', count, facts))}"
    ),
    "no_rich_recording": "{subject} has no rich recording, so host time is not divided into causes on either side.",
    "setting_differs": setting_differs,
    "package_differs": lambda package, **facts: setting_differs(setting=package, **facts),
    "one_side_generates": "Only {side} generates text.",
    "one_side_is_own": "Only {side} is a model of the user's own.",
    "not_timed": "No unprofiled times of both sides: the traces alone cannot say which side is faster.",
    "not_alternated": (
        "The sides were not timed in alternation: drift of the machine between them counts as a difference."
    ),
    "too_few_calls": too_few_calls,
    "uneven_calls": (
        "One side has more timed calls than the other; only the first {rounds} rounds, made of both, count."
    ),
    "compiled_while_timed": (
        "{subject}: {compilations:counted compilation} ran inside timed calls: the verdict is withheld."
    ),
    "ran_eager": lambda reason: (
        f"The compiled form ran eager: no recorded step entered compiled code{f' ({reason})' if reason else ''}."
        " The verdict is not of it."
    ),
    "part_ran_eager": "Part of the {subject} form ran eager: {place}: {reason}.",
    "drifted": lambda subject, share: (
        f"{subject} became {percent(abs(share))} {'slower' if share > 0 else 'faster'} while it was timed (last third"
        " of the calls to first): the machine's speed drifted."
    ),
    "two_speeds": lambda subject, fast_us, slow_us, slow_share, lasting: (
        f"{subject} ran at two speeds: {percent(1 - slow_share, 0)} of the calls took about {fast_us / 1e3:.3f} ms,"
        f" the others {slow_us / 1e3:.3f} ms{'' if lasting else ', changing from call to call'}. Clocks that switch or"
        " other work on this machine do that."
    ),
    "speedup_by_thirds": (
        "Rounds hold both forms, so that what moves both leaves their ratio in peace: the speed-up was {first:times}"
        " in the first third of the rounds and {last:times} in the last."
    ),
    "ratio_changed": ratio_changed,
    "process_spread": lambda subject, fastest_us, slowest_us, waits_for_host: (
        f"{subject} took {duration(fastest_us)} to {duration(slowest_us)} a call from process to process,"
        f" {_apart(fastest_us, slowest_us, waits_for_host)}"
    ),
    "advice_process_spread": lambda subject, own_us, advised_us, waits_for_host: (
        f"{subject} took {duration(own_us)} a call in the run's own process and {duration(advised_us)} in the one that"
        f" tried the advice, {_apart(min(own_us, advised_us), max(own_us, advised_us), waits_for_host)}"
    ),
    "one_process_small_change": (
        "Measured in one process, and the change is small: where the program's memory and threads come to lie can"
        " change times by several percent from one start to the next. --repeat-process 4 measures that."
    ),
    "one_process_waits_for_host": (
        "Measured in one process, and {subject} waits for the host: the GPU is idle for {idle_share:percent 0} of its"
        " call. Speed-ups of such forms differed by up to {seen_apart:percent 0} from process to process on an H200"
        " (docs/timing.md), so one process hardly tells how large the change is. --repeat-process 4 measures it."
    ),
    "two_processes": (
        "Two processes hardly tell how much processes differ: their interval is wide. --repeat-process 4 makes five."
    ),
    "eager_differs_between_runs": (
        "The eager form took {ratio:.2f} times as long in the process of {slowest} as in that of {fastest}: look at"
        " speed-ups, each within one process, before absolute times."
    ),
    "interrupted": (
        "{runs:A run|Both runs} of this comparison was interrupted and is not whole: calls or recordings are missing."
    ),
    "no_operators": (
        "{subject} holds no operators for most of its kernels (CUDA graphs, or CUDA activity alone): they are"
        " matched by their names, which can mix up work of different sizes; --ops TRACE lends the operators of a"
        " recording of the same model without CUDA graphs."
    ),
    "no_shapes": (
        "{subject} was recorded without shapes (record_shapes): its kernels are matched by names and order,"
        " which can mix up work of different sizes."
    ),
    "little_matched": lambda matched_shares: (
        f"Only {_of_times(matched_shares)} could be matched: are both sides the same model, at the same sizes?"
    ),
    "matched_by_elimination": matched_by_elimination,
    "provenance_unused": lambda why: (
        f"Kernels are matched by operators, shapes and order, not by provenance: {NO_PROVENANCE[why]}."
    ),
    # What was noted while the run was asked, as its folder holds it.
    "provenance_noted": "{message}",
    "provenance_without_work": "the runs that were asked where work comes from hold no GPU work",
    "not_in_provenance": (
        "{activities} of {of_activities} {subject} activities are not in the run that was asked where they come from"
    ),
    "only_in_provenance": (
        "{activities} {subject} activities of the run that was asked where they come from are not in the recording"
    ),
    "ambiguous_launch_sites": (
        "{groups:counted group} of compiled activities could be of several launch sites: each is one with them"
    ),
    "operators_linked_by_elimination": (
        "{operators} of {of_operators} eager operators {operators:was|were} linked to launches by elimination, not one"
        " by one"
    ),
    "operators_of_other_sizes": (
        "{operators} {operators:operator has|operators have} an output of another size than the work linked to it"
    ),
    "operators_without_counterpart": (
        "{operators} eager {operators:operator|operators} inside compiled modules {operators:has|have} no counterpart"
        " in a graph"
    ),
    "unexplained_launch_sites": (
        "{sites} {sites:launch site stands|launch sites stand} for no eager operator that is known"
    ),
}
