"""Notes on how the forms were timed, and in how many processes."""

from __future__ import annotations

from tracekit.numbers import counted, duration, percent
from tracekit.report.words.saying import Sentence

#: Where speed-ups hold though processes differ, and where they do not (docs/timing.md).
RATIOS_HOLD = "Ratios of calls in one process hold better than that; absolute times, and what each call saves, do not."
RATIOS_MOVE = "It waits for the host: speed-ups of such forms move from process to process too."


def too_few_calls(*, calls: int, needed: int, repeats: int) -> str:
    told = f"Only {counted(calls, 'timed call')} a side: a verdict needs {needed} at least (--iterations)."
    if not repeats:
        return told
    return f"{told} That is of one process: the calls of {counted(repeats, 'repeat')} do not make up for it."


def ran_eager(*, reason: str | None) -> str:
    why = f" ({reason})" if reason else ""
    return f"The compiled form ran eager: no recorded step entered compiled code{why}. The verdict is not of it."


def drifted(subject: str, *, share: float) -> str:
    became = f"{percent(abs(share))} {'slower' if share > 0 else 'faster'}"
    return (
        f"{subject} became {became} while it was timed (last third of the calls to first): the machine's speed drifted."
    )


def two_speeds(subject: str, *, fast_us: float, slow_us: float, slow_share: float, lasting: bool) -> str:
    return (
        f"{subject} ran at two speeds: {percent(1 - slow_share, 0)} of the calls took about {fast_us / 1e3:.3f} ms, "
        f"the others {slow_us / 1e3:.3f} ms{'' if lasting else ', changing from call to call'}. Clocks that switch or "
        "other work on this machine do that."
    )


def ratio_changed(*, share: float, repeat: int | None) -> str:
    """`repeat` is 0 for the run's own process, and None where that is the only one."""
    of = "" if repeat is None else f" of repeat {repeat}" if repeat else " of the run's own process"
    return (
        f"Within the timing{of} one form changed its speed against the other's by {percent(share)}: no smaller"
        " difference is called a change."
    )


def process_spread(subject: str, *, fastest_us: float, slowest_us: float, waits_for_host: bool) -> str:
    return (
        f"{subject} took {duration(fastest_us)} to {duration(slowest_us)} a call from process to process,"
        f" {percent(slowest_us / fastest_us - 1, 0)} apart. {RATIOS_MOVE if waits_for_host else RATIOS_HOLD}"
    )


def advice_process_spread(subject: str, *, own_us: float, advised_us: float, waits_for_host: bool) -> str:
    low, high = sorted((own_us, advised_us))
    return (
        f"{subject} took {duration(own_us)} a call in the run's own process and {duration(advised_us)} in the one that"
        f" tried the advice, {percent(high / low - 1, 0)} apart. {RATIOS_MOVE if waits_for_host else RATIOS_HOLD}"
    )


def interrupted(*, runs: int) -> str:
    which = "A run of this comparison" if runs == 1 else "Both runs of this comparison"
    return f"{which} was interrupted and is not whole: calls or recordings are missing."


SENTENCES: dict[str, Sentence] = {
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
    "ran_eager": ran_eager,
    "part_ran_eager": "Part of the {subject} form ran eager: {place}: {reason}.",
    "drifted": drifted,
    "two_speeds": two_speeds,
    "speedup_by_thirds": (
        "Rounds hold both forms, so that what moves both leaves their ratio in peace: the speed-up was {first:times}"
        " in the first third of the rounds and {last:times} in the last."
    ),
    "ratio_changed": ratio_changed,
    "process_spread": process_spread,
    "advice_process_spread": advice_process_spread,
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
    "interrupted": interrupted,
}
