"""The few words that fit a line of the terminal: causes of idle time, notes below the headline, advice."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from tracekit.model.analysis import OF_LAUNCHING
from tracekit.model.option import option_words
from tracekit.names import clipped, clipped_within
from tracekit.numbers import count, duration, percent, size, times
from tracekit.report.words.common import cause_words
from tracekit.report.words.findings.compiling import check_sentence
from tracekit.report.words.notes.comparisons import (
    LOOKED_AT,
    OUTPUTS_OF_RANK,
    alone,
    drift_words,
    independent_words,
    kinds_words,
    third,
)
from tracekit.report.words.saying import Sentence, say
from tracekit.statements.bounds import IDLE, UNKNOWN_BECAUSE, WORK
from tracekit.wings import load, over_ranks, wings

if TYPE_CHECKING:
    from tracekit.model.comparison import Bound, Comparison, Finding, Side
    from tracekit.model.note import Note
    from tracekit.model.waterfall import Basis

#: What a side is where no one thing holds it back, and where only the limit of its kernels is not known.
MIXED, UNKNOWN = "bound by several things", "bottleneck unknown"
#: What names in a subject are called where there is no room for all of it.
SHORTER = {"NVIDIA ": "", "bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}

#: Characters of the line of a graph break, and of its reason.
BREAK, REASON = 40, 60

#: What there is to try: for faster calls, for whatever there is, and for a shorter start.
FASTER, TRY, SHORTER_START = "To speed up the call", "Try next", "To shorten compiling"
NOTHING_FASTER = "nothing known"

#: How a start was, before what it costs.
STARTS = {"compiled_warm_cache": "with a warm cache "}


def throttled(*, limit: str, share: float, sides: Sequence[str]) -> str:
    return f"{limit_words(limit, share)}: {' and '.join(sides)} throttled"


def limit_words(limit: str, share: float) -> str:
    return f"{limit} limit active {percent(share, 0)} of the time"


#: Notes without which the headline is read wrong, the gravest first.
HEADLINE: dict[str, Sentence] = {
    "damaged_recording": "trace of {subject} is damaged",
    "same_recording": "both sides are the same trace",
    "compiled_while_timed": "{subject}: {compilations:counted compilation} inside timed calls: no verdict",
    "ran_eager": lambda reason: f"the compiled model ran eager{f': {reason}' if reason else ''}",
    "part_ran_eager": "part of the model ran eager: {place}",
    "not_read_over_steps": lambda window: (
        f"times and speed-up are of whole calls, trace figures of {LOOKED_AT[window]}"
    ),
    "training_mode": lambda modules, side: (
        f"{f'{side}: ' if side else ''}{', '.join(modules)} in training mode, dropout is on (.eval() for inference)"
    ),
    "rank_outputs": lambda subject, ranks, of_ranks, result, **_: (
        f"outputs of {alone(ranks, of_ranks).lower()} {OUTPUTS_OF_RANK[result]}"
    ),
    "rank_ran_eager": lambda subject, ranks, of_ranks, where, function, reason: (
        f"{alone(ranks, of_ranks).lower()} ran {function or where or 'a frame'} eager: {reason}"
    ),
    "rank_recompiled": lambda subject, ranks, of_ranks, function, where, times, least, timed, failed_check: (
        f"{alone(ranks, of_ranks).lower()} recompiled {function or where or 'a frame'}"
        f"{' in timed calls' if timed else ''}: {check_sentence(failed_check)}"
    ),
    "rank_broke": lambda subject, ranks, of_ranks, where, function, reason: (
        f"{alone(ranks, of_ranks).lower()} has a graph break at {where or function or 'an unknown line'}"
    ),
    "ranks_differ": "A is of {a:counted rank}, B of {b}: only rank 0 of each is compared",
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
    "throttled": throttled,
    "throttled_in_samples": "throttled in {samples} of {of_samples} samples: {reason}",
    "clocks_differ": "GPU clocks differ",
    "two_speeds": lambda subject, slow_share, slow_us, fast_us, lasting: (
        f"{percent(slow_share, 0)} of {subject} at {duration(slow_us)}"
    ),
    "drifted": lambda subject, share: f"{subject} {drift_words(share)} during timing",
    "speedup_by_thirds": lambda first, last, beyond_ci, slower: (
        f"{'not steady, beyond the CI:' if beyond_ci else 'speed-up'} {third(first, slower)} in the first third,"
        f" {third(last, slower)} in the last"
    ),
    "coarse_clock": "the clock shows steps of up to {share:percent 0} of a call",
    "outliers": lambda rounds, of_rounds, speedup: (
        f"{rounds:,} of {of_rounds:,} rounds are outliers, left out: {times(speedup)} with them"
    ),
    "warming": lambda subject, calls, of_calls: (
        f"{calls:,} of {of_calls:,} calls, at the beginning, left out: speeds had not settled"
    ),
    "two_kinds": lambda kinds: f"processes are of two kinds: {kinds_words(kinds)}",
    "few_stretches": lambda rounds, stretches, needed: (
        f"{independent_words(rounds, stretches, needed)}"
        f" (more with {'--iterations' if rounds < needed else '--time-budget, --repeat-process 4'})"
    ),
    "timed_slower_than_recorded": (
        "calls of {subject} took longer timed than recorded (other load or clock): measure again"
    ),
    "several_gpus": "{subject} ran on {gpus} GPUs: figures are sums",
    "rank_memory": lambda subject, ranks, of_ranks, peak_bytes, least_bytes: (
        f"{alone(ranks, of_ranks).lower()} holds {size(peak_bytes)} in {subject}, the rank with least"
        f" {size(least_bytes)}"
    ),
}

#: Outputs that are fine.
OUTPUTS = {"equal": "Outputs are equal", "as_accurate": "Outputs as accurate as eager's"}

#: Why a command is worth trying, by the finding's code.
WHY: dict[str, Sentence] = {
    "broken_graphs": lambda can_be_switched, **_: "may remove the graph break" if can_be_switched else "",
    "cold_start": "compiles one block, reuses it; adds guards",
    "launch_bound": "CUDA graphs",
    "lost_attention": "keeps fused attention",
    "slower_attention": "keeps eager's attention",
    "slower_convolutions": "keeps eager's convolution layout",
    "uncompiled_component": lambda component, others=(), **_: f"compiles {' and '.join([component, *others])} too",
    "little_compiled": "compiles more of the model",
}

#: What is to be changed in the model's own code.
IN_CODE = {
    "list_scopes": "a wider --scope",
    "compile_layers": "compile repeated layers one by one",
    "pin_memory": "pin host memory, copy with non_blocking=True",
    "keep_on_gpu": "keep the value on the GPU",
    "read_after_the_call": "read values after the call, not within it",
}


#: The last of what ranks of a job did otherwise.
LAST_OF_RANKS = "rank_broke"


@cache
def every_headline() -> dict[str, Sentence]:
    """Those of the core and of wings, which stand behind what ranks did, the gravest first."""
    of_wings = {code: words for wing in wings() if wing.headlines for code, words in load(wing.headlines).items()}
    said = {}
    for code, words in HEADLINE.items():
        said[code] = words
        said |= of_wings if code == LAST_OF_RANKS else {}
    return said


def headline_notes(notes: tuple[Note, ...], names: tuple[str, str] = ("A", "B")) -> tuple[str, ...]:
    """A line each of the notes that bear on the headline, the gravest first; those of one text, and both sides' speeds,
    in one. `names` are what A and B are called."""
    known = every_headline()
    order = list(known)
    bearing = sorted((note for note in notes if note.code in known), key=lambda note: order.index(note.code))
    said: dict[str, list[str]] = {}
    for note in bearing:
        words = say(known[note.code], note.facts, note.subject)
        if note.code == "clocks_differ":
            words = clock_words(note.facts["clocks_mhz"], names)
            if note.facts["faster"] == note.facts["lower"]:
                words += " (gain larger at equal clocks)"
            if held := next((each.facts for each in bearing if each.code == "throttled"), None):
                said["throttled"] = [f"{limit_words(held['limit'], held['share'])}; {words}"]
                continue
        said.setdefault(note.code, []).append(words)
    if drifts := said.get("drifted"):
        thirds = said.pop("speedup_by_thirds", [])
        beyond = any(note.code == "speedup_by_thirds" and note.facts["beyond_ci"] for note in bearing)
        said["drifted"] = thirds if beyond else ["; ".join((*drifts, *thirds))]
    if speeds := said.get("two_speeds"):
        said["two_speeds"] = [f"calls are bimodal: {', '.join(speeds)}"]
    return tuple(dict.fromkeys(each for words in said.values() for each in words))


def clock_words(clocks_mhz: Sequence[float], names: Sequence[str]) -> str:
    told = (f"{clock:,.0f} {name}" for name, clock in zip(names, clocks_mhz, strict=True))
    return f"clock {', '.join(told).replace(' ', ' MHz ', 1)}"


def advice_words(finding: Finding) -> tuple[str, str]:
    """What to try, and why: `--mode reduce-overhead`, `CUDA graphs`."""
    options = [f"{name}={value}" for name, value in finding.environment.items()]
    options += [word for name, value in finding.changes.items() for word in option_words(name, value)]
    known = over_ranks()
    whys: dict[str, Sentence] = WHY | (load(known.why) if known else {})
    why = say(whys[finding.code], finding.facts) if finding.code in whys else ""
    if finding.code == "cold_start" and finding.facts["can_be_regional"]:
        # No faster calls: its command changes nothing that is compared.
        options.append("--scope regional")
    if finding.code == "broken_graphs" and finding.facts["costly"] and not options:
        return f"remove the graph break at {_break_place(finding.facts)}", why
    if finding.code == "broken_graphs" and finding.verified is not None:
        # What may come of it was measured.
        why = "values in the graph"
    if options or finding.action is None or finding.action.code == "run_again":
        return " ".join(options), why
    in_code: dict[str, str] = IN_CODE | (load(known.in_code) if known else {})
    return in_code[finding.action.code], why


def _break_place(facts: Mapping[str, Any]) -> str:
    """`model.py:20, +1 more`: the line of the costliest break, without its folder."""
    first, more = facts["longest"][0], facts["lines"] - 1
    line = clipped_within(PurePath(first["where"] or "an unknown line").name, BREAK)
    return f"{line}, +{more} more" if more else line


def costly_breaks(findings: Iterable[Finding]) -> str:
    """The graph break that costs most and what it costs, and how many more there are; empty where they cost little."""
    for facts in (each.facts for each in findings if each.code == "broken_graphs" and each.facts["costly"]):
        first, more = facts["longest"][0], facts["lines"] - 1
        line = clipped_within(first["line"] or "an unknown line", 2 * BREAK)
        cost = f"at most {duration(first['cost_us'])} {'GPU idle' if facts['on_gpu'] else 'of host time'}"
        more = f", +{more} more" if more else ""
        return f"Graph break at {line}: {cost}{more} ({clipped(first['reason'], REASON)})"
    return ""


def python_place(comparison: Comparison) -> str:
    """`at the graph break model.py:20`: where most of B's idle time that is Python's lies; empty where that is not
    known."""
    python_us = (comparison.b.calibrated_idle_by_cause() or comparison.b.idle_by_cause()).get("python", 0.0)
    for facts in (each.facts for each in comparison.findings if each.code == "broken_graphs"):
        cost_us = facts["longest"][0]["cost_us"] or 0.0
        # Of the break's time another cause may have most.
        if facts["costly"] and 1 / 2 <= cost_us / max(python_us, 1.0) <= 2:
            return f"at the graph break {_break_place(facts)}"
    return ""


def slower_cause(cause: str, comparison: Comparison) -> str:
    """Why the GPU waits longer for it; empty where that is not known."""
    a, b = comparison.a, comparison.b
    if cause == "guards":
        return "checked in every call"
    counts = {
        "launch_call": ("launches", a.launches_per_step, b.launches_per_step),
        "launch_latency": ("launches", a.launches_per_step, b.launches_per_step),
        "device": ("kernels", a.kernels_per_step, b.kernels_per_step),
    }
    noun, before, after = counts.get(cause, ("", None, None))
    return f"{count(before)} → {count(after)} {noun}" if before and after and after > before else ""


def slower_kernels(comparison: Comparison) -> str:
    """Why kernels that are the same take longer."""
    lower = {note.facts["lower"] for note in comparison.notes if note.code == "clocks_differ"}
    if comparison.b.analysis.communication and comparison.b.label not in lower:
        return "perhaps for communication beside them"
    return "the lower GPU clock" if comparison.b.label in lower else "cause not known"


def bottleneck(side: Side, bound: Bound) -> tuple[str, str]:
    """`launch-bound`, and why: `GPU idle 76 % (63 % waiting for the host + 13 % other); no CUDA graph`, or `; largest
    cause Python`. `UNKNOWN` is in its reason too."""
    whole = sum(bound.parts_us.values())
    if not whole:
        return UNKNOWN, f"{UNKNOWN}: nothing was recorded"
    shares = {part: us / whole for part, us in bound.parts_us.items() if us > 0}
    work, idle = (sorted(shares.keys() & some, key=lambda part: -shares[part]) for some in (WORK, IDLE))
    share = sum(shares[part] for part in idle)
    waits = f"GPU idle {percent(share, 0)}"
    because = UNKNOWN_BECAUSE[bound.unknown_because].short if bound.unknown_because else ""
    if bound.kind is None and work and work[0] == "unknown":
        waiting = f" ({percent(shares[idle[0]], 0)} {IDLE[idle[0]].short})" if idle else ""
        return UNKNOWN, f"{UNKNOWN}{f' ({because})' if because else ''}; {waits}{waiting}"
    if bound.kind in (None, "launch-bound", "sync-bound", "mixed") and idle:
        # Shares of the call, as their sum is.
        left = round(share * 100) - round(shares[idle[0]] * 100)
        waits += f" ({percent(shares[idle[0]], 0)} {IDLE[idle[0]].short}{f' + {left} % other' if left else ''})"
    why = f" ({because})" if because else ""
    told = [f"{percent(shares[part], 0)} {WORK[part].short}{why if part == 'unknown' else ''}" for part in work[:1]]
    if bound.kind == "launch-bound" and side.launches_per_step is not None:
        return bound.kind, "; ".join(filter(None, (waits, _late_because(side, bound.basis))))
    first, second = (told, [waits]) if not idle or not work or shares[work[0]] > share else ([waits], told)
    parts = ", ".join((*first, *second))
    if bound.kind is None:
        return UNKNOWN, f"{UNKNOWN}; {parts}"
    return MIXED if bound.kind == "mixed" else bound.kind, parts


def _late_because(side: Side, basis: Basis) -> str:
    """Where launching is most of what the GPU waits for, if CUDA graphs do it; else the host's largest cause. Empty
    where that is not known."""
    profiled = basis == "trace"
    estimate = side.recorded_idle_estimate if profiled else side.idle_estimate
    causes = (side.idle_by_cause() if profiled else side.calibrated_idle_by_cause()) or {}
    host = {cause: us for cause, us in causes.items() if cause not in ("profiler", "device")}
    if 2 * math.fsum(host.get(cause, 0.0) for cause in OF_LAUNCHING) > math.fsum(host.values()):
        share = side.graphed_share
        return f"{percent(share, 0)} of kernels in CUDA graphs" if share else "no CUDA graph"
    largest = estimate.largest(None if profiled else side.idle_residual_us) if estimate else None
    return f"largest cause {cause_words(largest)}" if largest in host and largest != "unattributed" else ""
