"""Findings on what was compiled, what was not, and what that costs."""

from collections.abc import Sequence
from typing import Any

from tracekit.model.timing import span_of_calls
from tracekit.numbers import calls_span, counted, duration, percent
from tracekit.report.words.saying import Sentence
from tracekit.statements.guards import check_sentence

#: What is said of the advice where nothing can be switched on: it saves nothing by itself, and is not tried.
FULLGRAPH = " --fullgraph does not remove breaks: it raises an error that names the first one."
#: Of a value that decides which code runs next, whatever Dynamo hints at.
STEERS = "its value steers a branch: torch.where for both branches, or torch.cond for one of them"
FELL_BACK = {
    "recompile_limit": "{} hit the recompile limit (falls back to eager)",
    "skipped": "Dynamo skipped {} (falls back to eager)",
    "error": "{} failed to compile (falls back to eager)",
}


def graphs_break(*, lines: int, longest: list[dict[str, Any]], counted_by_dynamo: int, **facts: Any) -> str:
    told = []
    for each in longest:
        idle = f", GPU idle in at most {duration(each['cost_us'])}" if facts["on_gpu"] else ""
        cost = f" ({duration(each['per_step_us'])} per step outside of graphs{idle})" if each["per_step_us"] else ""
        hint = STEERS if each["steers_branch"] else each["hint"]
        hinted = f" (hint: {hint.rstrip('.')})" if hint else ""
        told.append(f"{each['line'] or 'unknown line'}: {each['reason']}{cost}{hinted}")
    told += [f"and {lines - len(longest)} more"] if lines > len(longest) else []
    text = f"{'; '.join(told)}."
    if counted_by_dynamo:
        # Dynamo's own count, which other parts of a report show: it counts a line again for each function it compiles.
        breaks = counted(counted_by_dynamo, "break")
        text += f" Dynamo counts {breaks}, one for each function compiled up to such a line."
    return text if facts["can_be_switched"] else text + FULLGRAPH


def _calls(calls: float, calls_at_most: float | None, calls_ci95: Sequence[float] | None) -> str:
    return calls_span(*(span_of_calls(calls, calls_at_most, calls_ci95) or ()))


def cold_start(*, startup_us: float, call_saving_us: float, medians_apart_us: float | None, **facts: Any) -> str:
    saved = duration(call_saving_us)
    # By the speed-up, as the number of calls is; said where the two medians differ by something else.
    if medians_apart_us is not None and duration(medians_apart_us) != saved:
        saved += f" (by the speed-up; the medians are {duration(medians_apart_us)} apart)"
    text = f"A cold start takes {duration(startup_us)} longer than steady calls. Each call saves {saved}."
    if warm := facts["warm"]:
        pays = _calls(warm["calls"], warm["calls_at_most"], warm["calls_ci95"])
        text += f" With a warm cache: {duration(warm['startup_us'])}, break-even after {pays} calls."
    return (
        f"{text} For fewer calls per process keep Inductor's cache (TORCHINDUCTOR_CACHE_DIR,"
        f" torch.compiler.save_cache_artifacts){', or compile one block of many' if facts['can_be_regional'] else ''}."
        f"{'' if facts['warm_was_measured'] or facts.get('of_ranks') else ' --startup measures a warm cache.'}"
    )


def recompiled_during_timing(*, calls: int, first: list[dict[str, Any]], cost_us: float | None, **facts: Any) -> str:
    if not calls:
        return f"{counted(facts['compilations'], 'compilation')}: times include compilation."
    told = []
    for call in first:
        took = f": {call['wall_us'] / 1e6:.2f} s" if call["wall_us"] is not None else ""
        graphs = f"{call['cuda_graphs']} CUDA graphs recorded" if call["cuda_graphs"] else "unknown guard"
        checks = "; ".join(map(check_sentence, call["failed_checks"]))
        told.append(f"call {call['call']} recompiled{took}: {checks or graphs}")
    told += [f"and {calls - len(first)} more calls"] if calls > len(first) else []
    text = "; ".join(told)
    cost = f" Cost: {cost_us / 1e6:.2f} s over {counted(calls, 'call')}." if cost_us is not None else ""
    return f"{text[:1].upper()}{text[1:]}.{cost} {_how_to_warm_up(**facts)}"


def _how_to_warm_up(*, warmed_up_at: dict[str, int], any_size: bool, failed_for_one: bool, **_: Any) -> str:
    told = "Warm up with the inputs you run"
    if warmed_up_at:
        sizes = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in warmed_up_at.items())
        told = f"Warm-up had other sizes ({sizes}): warm up with all sizes you run"
    if not any_size:
        return f"{told}, or compile with --dynamic."
    if failed_for_one:
        return f"{told}. Even with --dynamic torch specializes sizes 0 and 1."
    return f"{told}. --dynamic does not remove these guards."


def eager_fallback_title(*, side: str, part: dict[str, Any] | None, **_: Any) -> str:
    if part is None:
        return f"{side} ran eager"
    named = f"`{part['function']}`" if part["function"] else "an unnamed frame"
    return FELL_BACK[part["kind"]].format(f"{named} ({part['where']})" if part["where"] else named)


def eager_fallback(*, part: dict[str, Any] | None, ran_eager: bool, eager_gpu_share: float | None, **_: Any) -> str:
    if ran_eager:
        share = "No recorded step entered compiled code."
    elif eager_gpu_share is None:
        share = "The rest ran compiled."
    else:
        share = f"{percent(eager_gpu_share, 0)} of GPU time is outside of compiled code."
    return f"{part['reason'] if part else 'torch.compile gave no reason'}. {share}"


def skipped_cuda_graphs(*, skips: list[dict[str, Any]], graphed_share: float | None, **_: Any) -> str:
    reasons = "; ".join(f"{each['reason'] or 'no reason'} ({each['times']}x)" for each in skips)
    why = f"torch skipped them: {reasons}." if reasons else "torch gave no reason."
    if graphed_share is None:
        return why
    return f"{why} {percent(graphed_share, 0)} of kernels ran in CUDA graphs."


#: Title and evidence by the finding's code.
WORDS: dict[str, tuple[Sentence, Sentence]] = {
    "broken_graphs": ("{lines:counted graph break} in {side}", graphs_break),
    "cold_start": (
        lambda calls, calls_at_most, calls_ci95, **_: f"Break-even: {_calls(calls, calls_at_most, calls_ci95)} calls",
        cold_start,
    ),
    "compile_slower": (
        "Compiled is slower",
        (
            "{b_wall_us:duration} per call compiled, {a_wall_us:duration} eager. Leave torch.compile off for this"
            " model, batch and mode."
        ),
    ),
    "compiled_again": (
        "{times:counted recompile} of {side} during warm-up",
        lambda function, where, failed_check, times, dearest_s, whole_s, **_: (
            f"{function or 'A function'} ({where or 'unknown line'}): {check_sentence(failed_check)}."
            f" Compile time: {f'{dearest_s:.1f} s of ' if times > 1 and dearest_s is not None else ''}{whole_s:.1f} s."
        ),
    ),
    "eager_fallback": (eager_fallback_title, eager_fallback),
    "little_compiled": (
        "{compiled_share:percent 0} of GPU time of {side} is compiled code",
        lambda compiled_share, busy_us, scope, **_: (
            f"{percent(1 - compiled_share, 0)}{'' if busy_us is None else f' of {duration(busy_us)} per step'} is"
            f" outside of compiled code.{'' if scope is None else f' Scope: {scope}.'}"
        ),
    ),
    "recompile_limit": (eager_fallback_title, eager_fallback),
    "recompiled_during_timing": ("Recompiles of {side} inside timed calls", recompiled_during_timing),
    "skipped_cuda_graphs": (
        lambda graphed_share, **_: f"CUDA graphs {'partly ' if graphed_share else ''}skipped",
        skipped_cuda_graphs,
    ),
    "uncompiled_component": (
        lambda component, partly_compiled, **_: (
            f"{'Part of ' if partly_compiled else ''}{component} is not compiled but has fusible kernels"
        ),
        lambda fusible_us, busy_us, kept_share, **_: (
            f"Pointwise kernels, norms, reductions and copies there take {duration(fusible_us)} per call,"
            f" {percent(fusible_us / busy_us, 0)} of GPU time. In compiled modules fusion cut such time to"
            f" {percent(kept_share, 0)}."
        ),
    ),
}
