"""The sentences and terms that all reports share, and the letters that sides go by."""

import math
from collections.abc import Iterator
from string import ascii_uppercase

from tracekit.model.analysis import FAMILIES, KernelTime
from tracekit.model.comparison import Comparison, Side, Verdict
from tracekit.model.estimate import SeparateRunsChange
from tracekit.model.run import Environment, Settings
from tracekit.model.sequence import CPP
from tracekit.model.timing import StopReason
from tracekit.names import is_triton
from tracekit.numbers import count, counted, duration, percent, times, times_within
from tracekit.shell import variable_words

#: Letter and side, in the order of the columns. A side that has none beside it has no letter.
Sides = tuple[tuple[str, Side], ...]
#: Rounds that amount to less than this share of independent ones are told beside them.
ALIKE = 0.5
#: Where the ratio of the medians beside an answer differs by more from it, in logarithms, both are told.
MEDIANS_DIFFER = 0.02

#: What an idle cause is called, and what it means.
CAUSES = {
    "sync_wait": ("synchronisation", "the host waited for the GPU, whose queue was then empty"),
    "launch_call": ("launch calls", "the host was inside the driver's launch call"),
    "op_dispatch": ("operator dispatch", "the host was dispatching the next operator"),
    "compiled_wrapper": ("compiled wrapper", "Python that torch.compile generated, around its kernels"),
    "guards": ("guards", "torch.compile looked for code whose guards hold"),
    "compile": ("compilation", "Dynamo, Inductor or Triton was compiling"),
    "memory": ("memory allocation", "the host was allocating or freeing memory"),
    "gc": ("garbage collection", "Python was collecting garbage"),
    "python": ("Python", "no host event: the user's Python, also at graph breaks, or untraced CPU time"),
    "profiler": ("the profiler itself", "profiler overhead, not in unprofiled calls"),
    "launch_latency": ("launch latency", "launched, not begun yet, behind no other work"),
    "device": ("gaps between queued kernels", "queued behind other work, on any stream, or inside a CUDA graph"),
    "unattributed": ("unattributed", "not in the trace"),
}

#: Families of which Inductor has templates.
TEMPLATED = ("gemm", "attention", "convolution")
#: Families as reports show them, by what `family_kind` says: what Inductor wrote from a template stands apart.
FAMILY_WORDS = {
    kind: words
    for family in FAMILIES
    for kind, words in ((family, family), (f"{family}_triton", f"{family} (Triton)"))
    if kind == family or family in TEMPLATED
} | {CPP: "C++ by Inductor"}

RESULTS = {"faster": "Faster", "slower": "Slower", "inconclusive": "Inconclusive", "not_timed": "Not timed"}


def is_on_cpu(comparison: Comparison) -> bool:
    """Whether both sides are a CPU's: their groups are of its outermost operators then."""
    return comparison.a.on_cpu and comparison.b.on_cpu


def with_letters(*sides: Side) -> Sides:
    """A, B, C, ...; of a single side the empty letter."""
    return tuple(zip(ascii_uppercase, sides, strict=False)) if len(sides) > 1 else (("", sides[0]),)


def both_sides(comparison: Comparison) -> Sides:
    return with_letters(comparison.a, comparison.b)


def side_name(letter: str, side: Side) -> str:
    """`B: compiled`, as columns and captions name it."""
    return f"{letter}: {side.label}" if letter else side.label


def result_word(comparison: Comparison) -> str:
    """The answer in a word."""
    verdict = comparison.verdict
    if verdict.basis != "apart":
        return RESULTS[verdict.result]
    return "Separate runs" if verdict.apart else "Not judged"


#: Sides tie where the interval leaves less than this; a machine is noisy from this noise floor on.
TIE, NOISY = 0.05, 0.1
#: Of a floating-point number that is a whole one of the last digit.
ROUNDING = 1e-9


def cached_words(hits: int, graphs: int) -> str:
    """`3 of 4 graphs from a cache`."""
    return f"{hits} of {counted(graphs, 'graph')} from a cache"


def cause_words(cause: str) -> str:
    return CAUSES[cause][0] if cause in CAUSES else cause


def family_kind(family: str, kernel: str) -> str:
    """`gemm_triton` of a product that Inductor wrote from a template; else the family."""
    return f"{family}_triton" if family in TEMPLATED and is_triton(kernel) else family


def family_words(each: KernelTime) -> str:
    """`gemm`, `gemm (Triton)`."""
    return FAMILY_WORDS.get(family_kind(each.family, each.name), each.family)


def scope(side: Side) -> str:
    """What one figure of the side is of. A run's steps are its calls, which may be of several steps themselves."""
    kind = side.analysis.window.kind
    if kind == "steps" and side.settings is not None:
        return "per call"
    return {"steps": "per step", "span": "per span", "whole": "in the whole trace"}[kind]


def shared_scope(comparison: Comparison, names: tuple[str, str] = ("A", "B")) -> str:
    return scope_of(tuple(zip(names, (comparison.a, comparison.b), strict=True)))


def scope_of(sides: Sides) -> str:
    """What one figure is of, once for all sides that agree."""
    scopes = {letter: scope(side) for letter, side in sides}
    if {*scopes.values()} == {"per step", "per call"}:
        return "per step"
    if len(set(scopes.values())) == 1:
        return next(iter(scopes.values()))
    return ", ".join(f"{letter} {words}" for letter, words in scopes.items())


def verdict_sentence(comparison: Comparison) -> str:
    """The answer, in one sentence."""
    sentence = _answer(comparison)
    # The names of forms are words; those of files and runs stay as they are written.
    first = sentence.partition(" ")[0]
    return sentence[:1].upper() + sentence[1:] if first in ("eager", "compiled") else sentence


def as_told(verdict: Verdict) -> tuple[float, tuple[float, float] | None]:
    """How many times as fast B is, or where it is slower how many times as long it takes; and that one's interval, of
    few processes its range."""
    ratio, ci95 = verdict.speedup or math.nan, verdict.told_range
    if verdict.result != "slower":
        return ratio, ci95
    return 1 / ratio, (1 / ci95[1], 1 / ci95[0]) if ci95 else None


def _answer(comparison: Comparison) -> str:
    verdict, a, b = comparison.verdict, comparison.a.label, comparison.b.label
    if verdict.result == "not_timed" or verdict.speedup is None:
        untimed = [side.label for side in (comparison.a, comparison.b) if side.wall_us is None]
        why = f"{untimed[0]} has no unprofiled times" if len(untimed) == 1 else "traces only, without unprofiled times"
        return f"Speed of {a} and {b} was not compared: {why}."
    if verdict.result in ("faster", "slower"):
        return f"{b} is {times_within(*as_told(verdict))} {verdict.result} than {a}{where_measured(comparison)}."
    if compiled := [side.label for side in comparison.compiled_while_timed]:
        return f"Recompiles inside timed calls ({' and '.join(compiled)}): no verdict."
    if verdict.apart is not None:
        return _separate_runs(verdict.apart, a, b)
    if verdict.basis == "apart":
        if models := different_models(comparison):
            return f"{a} and {b} are different models ({' and '.join(models)}): no verdict."
        return f"{a} and {b} were timed in separate runs, not interleaved: no verdict."
    if verdict.ci95 is None:
        return f"No difference between {a} and {b} is established."
    if is_open(verdict):
        return f"Not enough to tell {a} from {b}: {ratio_span(*(verdict.decided95 or verdict.ci95))} as fast."
    if not verdict.ci95[0] <= 1 <= verdict.ci95[1]:
        return f"{b} differs from {a} by less than {least_that_counts(verdict)}."
    where = where_measured(comparison)
    return f"{b} ties with {a}: any difference is within {most_apart(verdict.ci95)}{where}."


def is_open(verdict: Verdict) -> bool:
    """Whether nobody can tell: the interval is no tie, and holds 1 or is within the noise floor; or too few rounds are
    independent."""
    if verdict.result != "inconclusive" or verdict.ci95 is None:
        return False
    low, high = verdict.ci95
    # So small a difference hardly matters, unless the noise floor is larger.
    is_tie = (verdict.noise_floor or 0.0) <= TIE and 1 / (1 + TIE) <= low <= high <= 1 + TIE
    is_within = low <= 1 <= high or (verdict.noise_floor or 0.0) > (verdict.least_change or 0.0)
    return verdict.decided95 is not None or (not is_tie and is_within)


def least_that_counts(verdict: Verdict) -> str:
    """What a change must exceed, rounded up to a percent: the noise floor, or what is small."""
    return percent(math.ceil(100 * max(verdict.noise_floor or 0.0, verdict.least_change or 0.0) - ROUNDING) / 100, 0)


def undecided(verdict: Verdict, where: str = "") -> str:
    """`not enough to tell: 0.84-1.05× as fast`, `no difference beyond 2 %`, or `no difference: within 3 %` and `where`;
    of a verdict with an interval that is inconclusive."""
    assert verdict.ci95 is not None
    if is_open(verdict):
        return f"not enough to tell: {ratio_span(*(verdict.decided95 or verdict.ci95))} as fast"
    if not verdict.ci95[0] <= 1 <= verdict.ci95[1]:
        return f"no difference beyond {least_that_counts(verdict)}"
    return f"no difference: within {most_apart(verdict.ci95)}{where}"


def most_apart(ci95: tuple[float, float]) -> str:
    """By how much the sides may differ at most, rounded up to a percent."""
    return percent(math.ceil(100 * max(1 - ci95[0], ci95[1] - 1, 0.01) - ROUNDING) / 100, 0)


def different_models(comparison: Comparison) -> tuple[str, str] | None:
    """What both are called, where they are not the same one."""
    one, other = comparison.a.settings, comparison.b.settings
    return (one.workload, other.workload) if one and other and one.workload != other.workload else None


def _separate_runs(change: SeparateRunsChange, a: str, b: str) -> str:
    if not change.beyond:
        return (
            f"Separate runs leave open which is faster: {b} takes {times(change.low)} to {times(change.high)} as long"
            f" as {a}."
        )
    ratio, low, high, said = change.ratio, change.low, change.high, "takes {} as long as"
    if ratio < 1 and low > 0:
        ratio, low, high, said = 1 / ratio, 1 / high, 1 / low, "is {} faster than"
    return (
        f"In separate runs, {b} {said.format(times(ratio))} {a} ({times(low)} to {times(high)}), if all else was equal."
    )


def verdict_evidence(comparison: Comparison) -> str:
    """`Mean ratio of 217 interleaved rounds, profiler off; noise floor 3 %`; of sides that were not timed the ratio of
    their traces."""
    verdict = comparison.verdict
    if verdict.speedup is None:
        return _profiled_ratio(comparison)
    told = [_what_was_timed(comparison)]
    if any(side.diagnostics and side.diagnostics.timed_calls() for side in comparison.compiled_while_timed):
        told.append("without the rounds that compiled")
    # Else it stands beside the answer.
    if verdict.ci95 is not None and verdict.next_process95 is not None:
        low, high = as_told(verdict)[1] or verdict.ci95
        told.append(f"{what_is_told(verdict)} {low:.3f}-{high:.3f}")
    if verdict.noise_floor:
        told.append(_noise(verdict.noise_floor, verdict.speedup, comparison.b.environment))
    if verdict.stopped == "budget spent":
        told += _wider_than_asked(comparison)
    elif verdict.stopped not in (None, "asked number", "target reached"):
        told.append(STOPPED[verdict.stopped])
    # The process that was recorded may be far from the mean of all.
    if verdict.basis == "processes":
        told.append(f"mean call of all: {duration(verdict.a_wall_us)} → {duration(verdict.b_wall_us)}")
    if verdict.apart is not None and verdict.apart.assumed:
        told.append(f"the range above is wider: {verdict.apart.assumed}")
    return "; ".join(told)


def _profiled_ratio(comparison: Comparison) -> str:
    """Empty where the traces are not read alike, or say nothing of the time."""
    sides = (comparison.a, comparison.b)
    a_us, b_us = (side.span_us or side.analysis.window.span_us / side.steps for side in sides)
    if len({side.analysis.window.kind for side in sides}) > 1 or not (a_us and b_us):
        return ""
    ends = f"{duration(a_us)} → {duration(b_us)} {scope_of(both_sides(comparison))}"
    return f"Profiled ratio {times(a_us / b_us)} ({ends}), no speed-up: overheads differ"


def told_walls(comparison: Comparison) -> tuple[float | None, float | None]:
    """The median calls that stand beside the answer; of several processes the recorded one's, as in all tables."""
    if comparison.verdict.basis == "processes":
        return comparison.a.wall_us, comparison.b.wall_us
    return comparison.verdict.a_wall_us, comparison.verdict.b_wall_us


def where_measured(comparison: Comparison) -> str:
    """` in this process`, ` in these 4 processes`, ` in this job`; empty where the next process finds the same."""
    verdict = comparison.verdict
    if not verdict.in_this_process or verdict.basis not in ("rounds", "processes"):
        return ""
    if (verdict.processes or 1) > 1:
        return f" in these {verdict.processes} processes"
    return " in this job" if comparison.a.ranks else " in this process"


def what_is_told(verdict: Verdict) -> str:
    """What the interval beside the answer is: `in-process CI`, `range of 4 processes`, `95 % CI of 8 processes`."""
    if (verdict.processes or 1) == 1:
        return "in-process CI"
    return f"{'95 % CI' if verdict.told_range == verdict.ci95 else 'range'} of {verdict.processes} processes"


def ratio_span(low: float, high: float) -> str:
    """Rounded outwards: `0.98-1.38×`."""
    digits = 10 ** (1 if high >= 10 else 2)
    # Two figures of what is small.
    finer = digits if low >= 0.1 or low <= 0 else 10 ** (1 - math.floor(math.log10(low)))
    ends = math.floor(low * finer + ROUNDING) / finer, math.ceil(high * digits - ROUNDING) / digits
    decimals = [round(math.log10(each)) for each in (finer, digits)]
    return "-".join(f"{end:.{places}f}" for end, places in zip(ends, decimals, strict=True)) + "\N{MULTIPLICATION SIGN}"


def _noise(floor: float, speedup: float, environment: Environment | None) -> str:
    """The noise floor, and what is bad about it. A high one is no figure; where the host was busy, that is said."""
    if floor >= NOISY:
        busy = "use a quieter machine"
        if environment and environment.host_is_busy:
            busy = f"host load {environment.host_load:.1f} on {environment.logical_cores} cores"
        return f"noise floor over {percent(NOISY, 0)}: {busy}"
    more = "" if max(speedup, 1 / speedup) > 1 + floor else " (more than the change)"
    # One figure: more would be false precision for an estimate of noise.
    roughly = f"{float(f'{floor * 100:.1g}'):g} %" if floor >= 1e-4 else "below 0.01 %"
    return f"noise floor {roughly}{more}"


def _wider_than_asked(comparison: Comparison) -> Iterator[str]:
    """`±2.6 %, target ±1 %`; nothing where that rounds to the same, or where the interval is not the speed-up's."""
    verdict, timing = comparison.verdict, comparison.b.form.timing if comparison.b.form else None
    # Of few processes their range is told, which no target is of.
    ci95 = verdict.ci95 if verdict.told_range == verdict.ci95 else None
    if ci95 is None or timing is None or timing.target is None:
        return
    half = math.sqrt(ci95[1] / ci95[0]) - 1
    if round(half, 3) > timing.target:
        yield f"±{percent(half)}, target ±{timing.target * 100:g} %"


#: Why timing stopped.
STOPPED: dict[StopReason, str] = {
    "asked number": "number of calls reached",
    "target reached": "target interval reached",
    "budget spent": "time budget reached",
    "most rounds": "maximum number of rounds reached",
    "interrupted": "interrupted",
}


def _what_was_timed(comparison: Comparison) -> str:
    verdict = comparison.verdict
    if verdict.basis not in ("rounds", "processes"):
        timings = [side.form.timing if side.form else None for side in (comparison.a, comparison.b)]
        numbers = [1 + len(timing.processes if timing else ()) for timing in timings]
        if max(numbers) > 1:
            return f"mean of the medians of {numbers[0]} and {numbers[1]} processes, profiler off"
        a, b = (count(len(side.form.wall_us)) if side.form else "0" for side in (comparison.a, comparison.b))
        return f"medians of {a} and {b} calls in separate runs, profiler off"
    processes = verdict.processes or 1
    of = "Mean ratio" if processes == 1 else f"Mean of {processes} processes' mean ratios"
    rounds = counted(verdict.n or 0, "interleaved round") + (" in all" if processes > 1 else "")
    ranks = f" of {counted(len(comparison.a.ranks), 'rank')}" if comparison.a.ranks else ""
    about = []
    if verdict.stretches is not None and verdict.n and verdict.stretches < ALIKE * verdict.n:
        about.append(f"{math.floor(verdict.stretches)} independent")
    a_us, b_us = told_walls(comparison)
    if verdict.result != "inconclusive" and verdict.speedup and a_us and b_us:
        ratio = a_us / b_us
        if abs(math.log(ratio / verdict.speedup)) > MEDIANS_DIFFER:
            about.append(f"ratio of medians {times(1 / ratio if verdict.result == 'slower' else ratio)}")
    beside = f" ({'; '.join(about)})" if about else ""
    return f"{of} of {rounds}{ranks}{beside}, profiler off"


def machine(side: Side) -> str:
    """The GPU's name, or that this is a CPU run, or that the trace does not say."""
    if side.analysis.gpu is None and side.analysis.cpu is not None:
        cpu = side.environment.cpu if side.environment else None
        return f"CPU run ({cpu})" if cpu else "CPU run"
    if side.environment and side.environment.gpu:
        return side.environment.gpu
    names = sorted({device.name for device in side.analysis.devices if device.name})
    return ", ".join(names) if names else "GPU not named in the trace"


def subjects(comparison: Comparison) -> str:
    """What was run, on what: the first line of every report. Both sides where they differ."""
    a, b = subject(comparison.a), subject(comparison.b)
    return a if a == b else f"A: {a}; B: {b}"


def subject(side: Side) -> str:
    """What was run on one side, and on what."""
    settings = side.settings
    if settings is None:
        return machine(side)
    model, work = work_words(settings)
    weights = f"weights of {settings.pretrained}" if settings.pretrained else "random weights"
    steered = [variable_words(settings.variables)] if settings.variables else []
    compiled = compiling_words(settings)
    return " · ".join([*model, machine(side), *work, *compiled, *([] if settings.own else [weights]), *steered])


def work_words(settings: Settings) -> tuple[list[str], list[str]]:
    """Which model it is, and what one call of it does."""
    ranks = [counted(settings.nproc, "rank")] if settings.nproc else []
    own = settings.own
    parts = [settings.dtype]
    # Of a user's own model nobody but its owner knows what it is called with, but for what its `build()` takes.
    parts += [f"batch {settings.batch_size}"] if own is None or "batch_size" in own.takes else []
    parts += [f"{settings.height}\N{MULTIPLICATION SIGN}{settings.width}"] if settings.height and settings.width else []
    parts += [f"{settings.seq_length} tokens"] if settings.seq_length else []
    parts += [f"{settings.steps} denoising step{'s' if settings.steps > 1 else ''}"] if settings.steps else []
    if settings.generation:
        tokens = settings.generation.max_new_tokens
        asked = settings.generation.phase if tokens is None else f"{tokens} new token{'s' if tokens > 1 else ''}"
        parts.append(f"{asked}, {settings.generation.cache} cache")
    parts += [f"{each} ({settings.parallel})" if settings.parallel else each for each in ranks]
    parts += ["activation checkpointing"] if settings.checkpoint else []
    return [settings.workload, *(own.options if own else [f"{settings.size} size"])], parts


def compiling_words(settings: Settings) -> list[str]:
    """How it was compiled beside mode, scope and shapes."""
    order = settings.compile_order
    parts = [f"compiled {order.replace('-', ' ')}"] if order else []
    return [*parts, *(["compiled autograd"] if settings.compiled_autograd else [])]
