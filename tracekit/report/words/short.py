"""The few words that fit a line of the terminal: causes of idle time, notes below the headline, advice."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from tracekit.numbers import count, duration, percent
from tracekit.report.words.notes import note_sentence
from tracekit.report.words.saying import Sentence, say

if TYPE_CHECKING:
    from tracekit.model.comparison import Bound, Comparison, Finding, Side
    from tracekit.model.note import Note

#: Parts of a call in which the GPU is idle, and those in which it works.
IDLE = {
    "sync": "behind synchronising calls",
    "launch": "waiting for the host",
    "compile": "while compiling",
    "device": "between queued kernels",
    "unseen": "cause not recorded",
}
WORK = {
    "copy": "copies",
    "communication": "exposed communication, waiting included",
    "memory": "memory-bound kernels (est.)",
    "compute": "compute-bound kernels (est.)",
    "neither": "kernels far below either limit (est.)",
    "unknown": "kernels of unknown limit",
}
#: What is not known of kernels whose limit is not.
UNKNOWN_BECAUSE = {
    "no_sizes_in_graphs": "no sizes in CUDA graphs",
    "no_sizes": "no sizes recorded",
    "unknown_device": "device peak unknown",
}
#: What a side is where no one thing holds it back, and where only the limit of its kernels is not known.
MIXED, UNKNOWN = "bound by several things", "GPU-bound"
#: What names in a subject are called where there is no room for all of it.
SHORTER = {"NVIDIA ": "", "bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}

ONE_PROCESS = "One process: others may differ by several percent (--repeat-process 4 measures it)"
#: What one process is worth where that is no warning.
OF_ONE_PROCESS: dict[str, Sentence] = {
    "one_process_gpu_bound": (
        "One process is enough: GPU-bound speed-ups moved by at most {seen_apart:percent 0} between processes"
    ),
}

#: What there is to try: for faster calls, for whatever there is, and for a shorter start.
FASTER, TRY, SHORTER_START = "To speed up the call", "Try next", "To shorten compiling"
NOTHING_FASTER = "nothing known"

#: How a start was, after what it costs.
STARTS = {"compiled_warm_cache": " with a warm cache"}


def throttled(*, limit: str, share: float, sides: Sequence[str]) -> str:
    return f"{limit} limit {percent(share, 0)} of the time: {' and '.join(sides)} throttled"


#: Notes without which the headline is read wrong, the gravest first.
HEADLINE: dict[str, Sentence] = {
    "damaged_recording": "trace of {subject} is damaged",
    "same_recording": "both sides are the same trace",
    "compiled_while_timed": "{subject}: {compilations:counted compilation} inside timed calls: no verdict",
    "ran_eager": lambda reason: f"the compiled model ran eager{f': {reason}' if reason else ''}",
    "part_ran_eager": "part of the model ran eager: {place}",
    "waiting_untold": lambda subject, communication_us, rank, world_size, **_: (
        f"{'one rank' if rank is None else f'rank {rank}'}{f' of {world_size:,}' if world_size else ''}:"
        f" {duration(communication_us)} of communication include waiting for others (tracekit ranks FOLDER)"
    ),
    "communication_not_judged": (
        "communication includes waiting: its change is neither gain nor loss (tracekit ranks FOLDER)"
    ),
    "interrupted": "a run was interrupted: calls or recordings are missing",
    "cpu_run": "CPU run: it says nothing about a GPU",
    "too_few_calls": "{calls:counted timed call} a side, {needed} needed (--iterations)",
    "not_alternated": "the sides were not interleaved: drift counts as a difference",
    "windows_differ": "A and B cover different windows (--window)",
    "steps_differ": "A has {a} steps, B {b}; figures are per step",
    "throttled": throttled,
    "throttled_in_samples": "throttled in {samples} of {of_samples} samples: {reason}",
    "clocks_differ": "GPU clocks differ",
    "one_process_waits_for_host": (
        "one process: host-bound speed-ups vary by {seen_apart:percent 0} across processes, sign open"
        " (--repeat-process 4)"
    ),
    "one_process_large_change": (
        "one process: host-bound speed-ups vary by {seen_apart:percent 0} across processes, sign sure"
        " (--repeat-process 4)"
    ),
    "one_process_small_change": "one process: so small a change may be process spread (--repeat-process 4)",
    "two_processes": "two processes: the interval is wide (--repeat-process 4)",
    "two_speeds": lambda subject, slow_share, slow_us, fast_us, lasting: (
        f"{percent(slow_share, 0)} of {subject} at {duration(slow_us)}"
    ),
    "drifted": lambda subject, share: (
        f"{subject} became {percent(abs(share))} {'slower' if share > 0 else 'faster'} during timing"
    ),
    "speedup_by_thirds": "speed-up {first:times} in the first third, {last:times} in the last",
    "ratio_changed": "the speed-up drifted by {share:percent 1} during timing",
    "timed_slower_than_recorded": "{subject} was slower without the profiler than with it: measure again",
    "several_gpus": "{subject} ran on {gpus} GPUs: figures are sums",
}

#: Notes on a sweep; all others are written as they are elsewhere.
OF_SWEEPS: dict[str, Sentence] = {
    "eager_process_spread": lambda work, spread, slight, compared: (
        f"eager moved by up to {percent(spread)} between processes ({work})"
    ),
    "several_timing_rules": "cells were timed by different rules (--iterations, --target, --time-budget)",
    "machines_of_a_work_differ": "{works} of {of_works:counted workload} ran on different machines",
    "cells_side_by_side": "{cells} of {of_cells:counted cell} ran concurrently: eager may be too slow",
    "cells_throttled": "the GPU was throttled in {cells} of {of_cells:counted cell}",
}

#: Why a command is worth trying, by the finding's code.
WHY: dict[str, Sentence] = {
    "broken_graphs": "names the lines that break the graph",
    "cold_start": "compiles one block, reuses it",
    "launch_bound": "CUDA graphs",
    "lost_attention": "keeps fused attention, adds guards",
    "slower_attention": "keeps eager's attention",
    "slower_convolutions": "keeps eager's convolution layout",
    "uncompiled_component": "compiles {component} too",
    "little_compiled": "compiles more of the model",
}

#: What is to be changed in the model's own code.
IN_CODE = {
    "compile_layers": "compile repeated layers one by one",
    "pin_memory": "pin host memory, copy with non_blocking=True",
    "keep_on_gpu": "keep the value on the GPU",
    "read_after_the_call": "read values after the call, not within it",
}


def headline_notes(notes: tuple[Note, ...], names: tuple[str, str] = ("A", "B")) -> tuple[str, ...]:
    """A line each of the notes that bear on the headline, the gravest first; those of one text, and both sides' speeds,
    in one. `names` are what A and B are called."""
    order = list(HEADLINE)
    bearing = sorted((note for note in notes if note.code in HEADLINE), key=lambda note: order.index(note.code))
    said: dict[str, list[str]] = {}
    for note in bearing:
        words = say(HEADLINE[note.code], note.facts, note.subject)
        if note.code == "clocks_differ":
            words = clock_words(note.facts["clocks_mhz"], names)
            if note.facts["faster"] == note.facts["lower"]:
                words += " (real gain is larger)"
            if "throttled" in said:
                said["throttled"] = [f"{said['throttled'][0].partition(':')[0]}; {words}"]
                continue
        said.setdefault(note.code, []).append(words)
    if drifts := said.get("drifted"):
        said["drifted"] = ["; ".join((*drifts, *said.pop("speedup_by_thirds", ())))]
    if speeds := said.get("two_speeds"):
        said["two_speeds"] = [f"calls are bimodal: {', '.join(speeds)}"]
    return tuple(dict.fromkeys(each for words in said.values() for each in words))


def sweep_notes(notes: Iterable[Note]) -> tuple[str, ...]:
    return tuple(
        say(OF_SWEEPS[note.code], note.facts, note.subject) if note.code in OF_SWEEPS else note_sentence(note)
        for note in notes
    )


def clock_words(clocks_mhz: Sequence[float], names: Sequence[str]) -> str:
    return "clock " + ", ".join(f"{clock:,.0f} MHz {name}" for name, clock in zip(names, clocks_mhz, strict=True))


def advice_words(finding: Finding) -> tuple[str, str]:
    """What to try, and why: `--mode reduce-overhead`, `CUDA graphs`."""
    options = [f"{name}={value}" for name, value in finding.environment.items()]
    options += [f"--{name.replace('_', '-')} {value}".strip() for name, value in finding.changes.items()]
    why = say(WHY[finding.code], finding.facts) if finding.code in WHY else ""
    if finding.code == "cold_start" and finding.facts["can_be_regional"]:
        # No faster calls: its command changes nothing that is compared.
        options.append("--scope regional")
    if options or finding.action is None or finding.action.code == "run_again":
        return " ".join(options), why
    return IN_CODE.get(finding.action.code, finding.action.code), why


def slower_cause(cause: str, comparison: Comparison) -> str:
    """Why the GPU waits longer for it; empty where that is not known."""
    a, b = comparison.a, comparison.b
    if cause == "guards":
        return "checked in every call"
    if cause == "launch_call" and (b.launches_per_step or 0.0) > (a.launches_per_step or 0.0):
        return "more launches"
    if cause == "device" and (b.kernels_per_step or 0.0) > (a.kernels_per_step or 0.0):
        return "more kernels"
    return ""


def slower_kernels(comparison: Comparison) -> str:
    """Why kernels that are the same take longer."""
    lower = {note.facts["lower"] for note in comparison.notes if note.code == "clocks_differ"}
    if comparison.b.analysis.communication and comparison.b.label not in lower:
        return "perhaps for communication beside them"
    return "the lower GPU clock" if comparison.b.label in lower else "cause not known"


def bottleneck(side: Side, bound: Bound) -> tuple[str, str]:
    """`launch-bound`, and why: `GPU idle 76 % (63 % waiting for the host); 200 launches, no CUDA graph`."""
    whole = sum(bound.parts_us.values())
    if not whole:
        return "of unknown bottleneck", "nothing was recorded"
    shares = {part: us / whole for part, us in bound.parts_us.items() if us > 0}
    work, idle = (sorted(shares.keys() & some, key=lambda part: -shares[part]) for some in (WORK, IDLE))
    share = sum(shares[part] for part in idle)
    waits = f"GPU idle {percent(share, 0)}"
    if bound.kind not in ("compute-bound", "memory-bound", "copy-bound", "communication-bound", None):
        waits += f" ({percent(shares[idle[0]], 0)} {IDLE[idle[0]]})" if idle else ""
    why = f" ({UNKNOWN_BECAUSE[bound.unknown_because]})" if bound.unknown_because in UNKNOWN_BECAUSE else ""
    told = [f"{percent(shares[part], 0)} {WORK[part]}{why if part == 'unknown' else ''}" for part in work[:1]]
    if bound.kind == "launch-bound" and side.launches_per_step is not None:
        graphs = (
            f"{percent(side.graphed_share, 0)} of kernels in CUDA graphs" if side.graphed_share else "no CUDA graph"
        )
        return bound.kind, f"{waits}; {count(side.launches_per_step)} launches, {graphs}"
    first, second = (told, [waits]) if not idle or not work or shares[work[0]] > share else ([waits], told)
    return {None: UNKNOWN, "mixed": MIXED}.get(bound.kind, str(bound.kind)), ", ".join((*first, *second))
