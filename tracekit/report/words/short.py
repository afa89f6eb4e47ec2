"""The few words that fit a line of the terminal: causes of idle time, notes below the headline, advice."""

import math
from collections.abc import Iterable

from tracekit.model.analysis import OF_LAUNCHING
from tracekit.model.comparison import Bound, Comparison, Finding, Side
from tracekit.model.note import Note
from tracekit.model.option import option_words
from tracekit.model.timing import StartKind
from tracekit.model.waterfall import Basis
from tracekit.numbers import count, percent
from tracekit.report.words.common import cause_words
from tracekit.statements.bounds import IDLE, UNKNOWN_BECAUSE, WORK
from tracekit.statements.findings.compiling import BrokenGraphs
from tracekit.statements.findings.times import ColdStart
from tracekit.statements.notes import gpu, ranks, recordings, speeds, timing, work

#: What a side is where no one thing holds it back, and where only the limit of its kernels is not known.
MIXED, UNKNOWN = "bound by several things", "bottleneck unknown"
#: What names in a subject are called where there is no room for all of it.
SHORTER = {"NVIDIA ": "", "bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}
#: What there is to try: for faster calls, for whatever there is, and for a shorter start.
FASTER, TRY, SHORTER_START = "To speed up the call", "Try next", "To shorten compiling"
NOTHING_FASTER = "nothing known"
#: How a start was, behind what it costs.
STARTS = {"compiled_warm_cache": " with a warm cache"}
#: What the first call of a new process is of, before how long it took.
FIRST_CALLS: dict[StartKind, str] = {
    "compiled_no_cache": "compiled",
    "compiled_warm_cache": "warm cache",
    "eager": "eager",
}

#: Notes of what else differs between runs, and how many are told one by one above the headline.
DIFFERENCES, MOST_DIFFERENCES = (work.SettingDiffers, work.PackageDiffers), 8
#: Outputs that are fine.
OUTPUTS = {"equal": "Outputs are equal", "as_accurate": "Outputs as accurate as eager's"}

#: Notes without which the headline is read wrong, the gravest first. `Note` stands for those of wings that have
#: `on_first_screen`.
GRAVEST_FIRST: tuple[type[Note], ...] = (
    *(recordings.DamagedRecording, recordings.SameRecording, timing.CompiledWhileTimed, work.RanEager),
    *(work.PartRanEager, recordings.NotReadOverSteps, work.TrainingMode),
    *(ranks.RankOutputs, ranks.RankRanEager, ranks.RankRecompiled, ranks.RankBroke, Note, ranks.RanksDiffer),
    *(ranks.WaitingUntold, ranks.CommunicationNotJudged, timing.Interrupted, recordings.CpuRun, timing.TooFewCalls),
    *(timing.NotAlternated, recordings.WindowsDiffer, gpu.Throttled, gpu.ThrottledInSamples, gpu.ClocksDiffer),
    *(speeds.TwoSpeeds, speeds.Drifted, speeds.SpeedupByThirds, timing.CoarseClock, timing.Outliers, timing.Warming),
    *(speeds.TwoKinds, timing.FewStretches, recordings.TimedSlowerThanRecorded, recordings.SeveralGpus),
    ranks.RankMemory,
)


def headline_notes(notes: Iterable[Note], names: tuple[str, str] = ("A", "B")) -> tuple[str, ...]:
    """A line each of the notes that bear on the headline, the gravest first; those of one text, and both sides' speeds,
    in one. `names` are what A and B are called."""
    order = {kind: at for at, kind in enumerate(GRAVEST_FIRST)}
    bearing = [note for note in notes if note.on_first_screen or type(note) in order]
    bearing.sort(key=lambda note: order.get(type(note), order[Note]))
    throttled = next((note for note in bearing if isinstance(note, gpu.Throttled)), None)
    said: dict[type[Note], list[str]] = {}
    for note in bearing:
        words = note.short()
        if isinstance(note, gpu.ClocksDiffer):
            words = note.but(sides=names).short()
            if throttled:
                said[gpu.Throttled] = [f"{throttled.limited()}; {words}"]
                continue
        said.setdefault(type(note), []).append(words)
    if drifts := said.get(speeds.Drifted):
        thirds = said.pop(speeds.SpeedupByThirds, [])
        beyond = any(isinstance(note, speeds.SpeedupByThirds) and note.beyond_ci for note in bearing)
        said[speeds.Drifted] = thirds if beyond else ["; ".join((*drifts, *thirds))]
    if both := said.get(speeds.TwoSpeeds):
        said[speeds.TwoSpeeds] = [f"calls are bimodal: {', '.join(both)}"]
    return tuple(dict.fromkeys(each for words in said.values() for each in words))


def differences(notes: Iterable[Note]) -> str:
    """What else differs between the runs, which a reader must know before any figure; empty where nothing does."""
    found = [note.short() for note in notes if isinstance(note, DIFFERENCES)]
    more = [f"{len(found) - MOST_DIFFERENCES} more"] if len(found) > MOST_DIFFERENCES else []
    return f"The runs also differ: {'; '.join([*found[:MOST_DIFFERENCES], *more])}" if found else ""


def advice_words(finding: Finding, *, in_program: bool = False) -> tuple[str, str]:
    """What to try, and why: `--mode reduce-overhead`, `CUDA graphs`; `mode=reduce-overhead` in a program."""
    statement, advice = finding.statement, finding.advice
    options = [f"{name}={value}" for name, value in finding.environment.items()]
    for name, value in finding.changes.items():
        options += [f"{name}={value}"] if in_program else option_words(name, value)
    if isinstance(statement, ColdStart) and statement.can_be_regional:
        # No faster calls: its command changes nothing that is compared.
        options.append("scope=regional" if in_program else "--scope regional")
    if isinstance(statement, BrokenGraphs) and statement.costly and not options:
        return f"remove the graph break at {statement.removable}" if statement.removable else "", statement.why()
    why = statement.why() if finding.verified is None else statement.why_tried()
    return " ".join(options) or (advice.short() if advice else ""), why


def costly_breaks(findings: Iterable[Finding]) -> tuple[str, ...]:
    """The graph break that costs most and what it costs, and how many more there are, in ever fewer words; empty where
    they cost little."""
    broken = next((each.statement for each in findings if isinstance(each.statement, BrokenGraphs)), None)
    return broken.briefly if broken and broken.costly else ()


def python_place(comparison: Comparison) -> str:
    """`at the graph break model.py:20`: where most of B's idle time that is Python's lies; empty where that is not
    known."""
    python_us = (comparison.b.calibrated_idle_by_cause() or comparison.b.idle_by_cause()).get("python", 0.0)
    for broken in (each.statement for each in comparison.findings if isinstance(each.statement, BrokenGraphs)):
        cost_us = broken.longest[0].cost_us or 0.0
        # Of the break's time another cause may have most.
        if broken.costly and 1 / 2 <= cost_us / max(python_us, 1.0) <= 2:
            return f"at the graph break {broken.place}"
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
    lower = {note.lower for note in comparison.notes if isinstance(note, gpu.ClocksDiffer)}
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
